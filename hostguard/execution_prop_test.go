package hostguard

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// process is one life of an agent. Once it is dead nothing of it has an effect:
// no hook runs, no request leaves, no byte is written.
type process struct {
	objstore.Store
	w    *world
	g    *Guard
	x    *Execution
	ends chan struct{} // closed when it dies

	locked atomic.Bool // the host's lock, by a step
	mu     sync.Mutex
	dead   bool
	until  int // disk steps and requests before it dies by itself; 0: it does not
}

func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

func (p *process) end() {
	if !p.dead {
		p.dead = true
		close(p.ends)
	}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) diesIn(steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = steps
}

// alive counts one step, and fails it in a process that is dead or dies here.
func (p *process) alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until > 0 {
		if p.until--; p.until == 0 {
			p.end()
		}
	}
	if p.dead {
		return errCrash
	}
	return nil
}

func (p *process) Get(ctx context.Context, key string) (objstore.Object, error) {
	if err := p.alive(); err != nil {
		return objstore.Object{}, err
	}
	return p.Store.Get(ctx, key)
}

func (p *process) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	if err := p.alive(); err != nil {
		return objstore.Info{}, fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
	}
	info, err := p.Store.Put(ctx, key, body, cond)
	if p.alive() != nil {
		return objstore.Info{}, objstore.ErrUnknown
	}
	return info, err
}

func (p *process) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return p.Store.List(ctx, prefix)
}

// world is one host of one box: its disk, its claim, and what goes wrong.
type world struct {
	dir   string
	store *memstore.Store
	p     *process

	op     string // of the claim; "": serving
	ops    int
	takes  bool // this box takes part in op
	unread bool // the claim cannot be read

	failing  bool          // clean-ups fail
	blocked  chan struct{} // clean-ups wait for it, if set
	cleaning atomic.Int32
	inCall   bool
	cleaned  map[string]bool // by a clean-up that succeeded in this call
	over     map[string]bool // read so in this call, after that

	broken error // the first rule that did not hold
}

func (w *world) failf(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

func (w *world) boot() {
	g, err := Open(w.dir, "h.example", tester)
	if err != nil {
		w.failf("open: %w", err)
		return
	}
	p := &process{Store: w.store, w: w, g: g, ends: make(chan struct{})}
	g.disk.before = p.step
	p.x, err = NewExecution(ExecutionConfig{Guard: g, Store: p, CleanUp: p.cleanUp, Over: p.isOver, Logger: quietLog})
	if err != nil {
		w.failf("execution: %w", err)
		return
	}
	w.p = p
}

// step holds every write of the controller's to the rules, just before it.
func (p *process) step(step, path string) error {
	if err := p.alive(); err != nil {
		return err
	}
	w, rec := p.w, p.w.record()
	switch {
	case step == "remove" && path == p.g.execPath() && rec != nil:
		if !w.cleaned[rec.Op] || !w.over[rec.Op] {
			w.failf("the record of %s is cleared with clean-up %t, over %t in this call", rec.Op, w.cleaned[rec.Op], w.over[rec.Op])
		}
	case step == "remove" && rec != nil && path == p.g.participation(rec.Op):
		w.failf("%s is forgotten while its record exists", rec.Op)
	case step == "rename" && strings.HasPrefix(path, p.g.execPath()):
		for op := range w.journals() {
			if op != w.op && !w.cleaned[op] && (rec == nil || rec.Op != w.op) {
				w.failf("%s opens before %s was retired", w.op, op)
			}
		}
	}
	return nil
}

func (p *process) cleanUp(ctx context.Context, op string) error {
	w := p.w
	if p.isDead() {
		return errCrash
	}
	if n := w.cleaning.Add(1); n > 1 {
		w.failf("%d clean-ups at once", n)
	}
	defer w.cleaning.Add(-1)
	if p.x.Check(op) == nil {
		w.failf("%s is cleaned up while its controller is open", op)
	}
	if w.blocked != nil {
		select {
		case <-w.blocked: // whatever has become of ctx
		case <-p.ends:
		}
	}
	switch {
	case p.isDead():
		return errCrash
	case w.failing:
		return errors.New("the clean-up failed")
	}
	w.cleaned[op] = w.inCall
	return nil
}

func (p *process) isOver(_ context.Context, op string) (bool, error) {
	w := p.w
	if p.isDead() || w.unread {
		return false, errors.New("no claim")
	}
	over := w.op != op || !w.takes
	w.over[op] = over && w.cleaned[op]
	return over, nil
}

// call makes one call of the controller's, which must return by its deadline.
func (w *world) call(limit time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	w.inCall, w.cleaned, w.over = true, map[string]bool{}, map[string]bool{}
	start := time.Now()
	err := fn(ctx)
	if took := time.Since(start); took > limit {
		w.failf("a call took %s, its limit was %s", took, limit)
	}
	synctest.Wait()
	w.inCall = false
	return err
}

// pass is what an agent does after each claim read.
func (w *world) pass(limit time.Duration) (entered, finished error) {
	x, current := w.p.x, ""
	if w.op != "" && w.takes {
		current = w.op
		entered = w.call(limit, func(ctx context.Context) error { return x.Enter(ctx, current) })
		if (entered == nil) != (x.Check(current) == nil) {
			w.failf("entered: %v; checked: %v", entered, x.Check(current))
		}
		if entered == nil && !w.p.isDead() {
			entered = w.call(limit, func(ctx context.Context) error { return x.Active(ctx, current) })
		}
	}
	finished = w.call(limit, func(ctx context.Context) error { return x.Finish(ctx, current) })
	return entered, finished
}

func (w *world) record() *execRecord {
	rec, found, err := load[execRecord](filepath.Join(execDir(w.dir), "h.example.json"))
	if err != nil {
		w.failf("record: %w", err)
	}
	if !found || err != nil {
		return nil
	}
	return &rec
}

func (w *world) journals() map[string]bool {
	list, damaged, err := Participations(w.dir)
	if err != nil || damaged != nil {
		w.failf("journal: %w", errors.Join(append(damaged, err)...))
	}
	ops := map[string]bool{}
	for _, p := range list {
		ops[p.Op] = true
	}
	return ops
}

// check holds the world to what must be true whenever nothing is being done.
func (w *world) check() {
	if w.p.isDead() {
		synctest.Wait()
		w.boot()
	}
	rec, journals := w.record(), w.journals()
	if rec != nil && !journals[rec.Op] {
		w.failf("%s has a record and no journal", rec.Op)
	}
	open := 0
	for n := range w.ops + 1 {
		op := fmt.Sprint("op-", n)
		if w.p.x.Check(op) != nil {
			continue
		}
		if open++; rec == nil || rec.Op != op || !rec.Checked || rec.State == execLost {
			w.failf("%s is open under record %+v", op, rec)
		}
	}
	if open > 1 {
		w.failf("%d controllers are open", open)
	}
}

type lifeMove struct {
	kind string
	n    int
}

var lifeMoves = map[string]func(w *world, n int){
	"pass": func(w *world, n int) { w.pass(time.Duration(n%40+1) * time.Second) },
	"leave": func(w *world, _ int) {
		_ = w.call(time.Minute, func(ctx context.Context) error { return w.p.x.Finish(ctx, "") })
	},
	"new op":  func(w *world, _ int) { w.ops++; w.op, w.takes = fmt.Sprint("op-", w.ops), true },
	"exclude": func(w *world, _ int) { w.takes = false },
	"serving": func(w *world, _ int) { w.op, w.takes = "", false },
	"claim":   func(w *world, n int) { w.unread = n%2 == 0 },
	"fail":    func(w *world, n int) { w.failing = n%2 == 0 },
	"block": func(w *world, _ int) {
		if w.blocked == nil {
			w.blocked = make(chan struct{})
		}
	},
	"unblock": func(w *world, _ int) { w.unblock() },
	"lock": func(w *world, n int) {
		p := w.p
		if p.locked.Swap(true) {
			return
		}
		go func() {
			defer p.locked.Store(false)
			_ = p.g.locked(context.Background(), "test", func(state) error {
				select {
				case <-time.After(time.Duration(n) * time.Second):
				case <-p.ends:
				}
				return nil
			})
		}()
		synctest.Wait()
	},
	"kill":        func(w *world, _ int) { w.p.die() },
	"die soon":    func(w *world, n int) { w.p.diesIn(n%60 + 1) },
	"wait":        func(_ *world, n int) { time.Sleep(time.Duration(n) * time.Second) },
	"lose":        func(w *world, n int) { w.fault(n, memstore.Lose) },
	"lose answer": func(w *world, n int) { w.fault(n, memstore.LoseAnswer) },
	"refuse":      func(w *world, n int) { w.fault(n, memstore.Refuse) },
	"mend":        func(w *world, _ int) { w.store.Inject(nil) },
}

// fault makes the next few requests fail so, or all.
func (w *world) fault(n int, f memstore.Fault) {
	var count atomic.Int32
	w.store.Inject(func(memstore.Request) memstore.Fault {
		if n%2 == 0 || int(count.Add(1)) <= n/8 {
			return f
		}
		return memstore.None
	})
}

func (w *world) unblock() {
	if w.blocked != nil {
		close(w.blocked)
		w.blocked = nil
		synctest.Wait()
	}
}

// settle ends every fault. Then all must come to its end in a few passes: a
// successor starts in the first, beside whatever was left, and a box that takes
// no part is rid of an operation that runs on.
func (w *world) settle() {
	w.store.Inject(nil)
	w.unread, w.failing = false, false
	w.p.diesIn(0)
	w.unblock()
	time.Sleep(time.Minute) // for the lock
	w.check()
	lifeMoves["new op"](w, 0)
	if entered, finished := w.pass(time.Minute); entered != nil || finished != nil {
		w.failf("after all faults: enter: %v; finish: %v", entered, finished)
	}
	w.check()
	if err := w.p.x.Check(w.op); err != nil {
		w.failf("its own pass ended it: %w", err)
	}
	if rec := w.record(); rec == nil || rec.Op != w.op || rec.State != execActive || len(w.journals()) != 1 {
		w.failf("a successor's pass left record %+v, journals %v", rec, w.journals())
	}
	w.takes = false
	if _, err := w.pass(time.Minute); err != nil {
		w.failf("finish: %w", err)
	}
	if entries, err := os.ReadDir(execDir(w.dir)); err != nil || len(entries) > 0 || len(w.journals()) > 0 {
		w.failf("left over: %v, %v, %v", entries, err, w.journals())
	}
	if err := w.p.x.Close(context.Background()); err != nil {
		w.failf("close: %w", err)
	}
}

func live(dir string, moves []lifeMove) error {
	w := &world{dir: dir, store: memstore.New(), cleaned: map[string]bool{}, over: map[string]bool{}}
	w.boot()
	defer func() { // everything of the bubble ends before it does
		w.p.die()
		w.unblock()
		time.Sleep(time.Minute)
	}()
	for i, m := range moves {
		lifeMoves[m.kind](w, m.n)
		w.check()
		if w.broken != nil {
			return fmt.Errorf("after move %d of %v: %w", i, moves, w.broken)
		}
	}
	w.settle()
	return w.broken
}

func TestAnExecutionsLifeKeepsItsRules(t *testing.T) {
	root := memoryDir(t)
	kinds := slices.Sorted(maps.Keys(lifeMoves))
	for range 12 {
		kinds = append(kinds, "pass")
	}
	kinds = append(kinds, "new op", "mend", "unblock", "die soon")
	rapid.Check(t, func(rt *rapid.T) {
		moves := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) lifeMove {
			return lifeMove{rapid.SampledFrom(kinds).Draw(rt, "kind"), rapid.IntRange(0, 59).Draw(rt, "n")}
		}), 1, 40).Draw(rt, "moves")
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		var broken error
		synctest.Test(t, func(*testing.T) { broken = live(dir, moves) })
		if broken != nil {
			rt.Fatal(broken)
		}
	})
}
