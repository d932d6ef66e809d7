package hostguard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// bench is one controller whose hooks a test sets.
type bench struct {
	*Execution
	dir     string
	store   *memstore.Store
	cleanUp func(op string) error
	over    func(op string) (bool, error)
	cleaned []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), store: memstore.New(), cleanUp: func(string) error { return nil },
		over: func(string) (bool, error) { return true, nil }}
	b.boot(t, b.store)
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

func (b *bench) boot(t *testing.T, s objstore.Store) {
	t.Helper()
	g, err := Open(b.dir, "h.example", tester)
	require.NoError(t, err)
	b.Execution, err = NewExecution(ExecutionConfig{Guard: g, Store: s, Logger: quietLog,
		CleanUp: func(_ context.Context, op string) error { b.cleaned = append(b.cleaned, op); return b.cleanUp(op) },
		Over:    func(_ context.Context, op string) (bool, error) { return b.over(op) }})
	require.NoError(t, err)
}

func (b *bench) record(t *testing.T) (op string, state execState) {
	t.Helper()
	rec, _, err := b.g.exec()
	require.NoError(t, err)
	return rec.Op, rec.State
}

func TestEnteringIsJournaledRecordedAndLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.ErrorIs(t, b.Check("op-1"), ErrNoController)
		require.ErrorIs(t, b.Active(t.Context(), "op-1"), ErrNoController)
		require.NoError(t, b.Enter(t.Context(), "op-1"))
		require.NoError(t, b.Check("op-1"))
		require.ErrorIs(t, b.Check("op-2"), ErrNoController)
		op, state := b.record(t)
		require.Equal(t, "op-1 pending", op+" "+string(state))
		obj, err := b.store.Get(t.Context(), "control/exec/h.example/op-1/box-1.json")
		require.NoError(t, err)
		require.Contains(t, string(obj.Body), `"ttl_ms":15000`)

		require.NoError(t, b.Active(t.Context(), "op-1"))
		_, state = b.record(t)
		require.Equal(t, execActive, state)
		before := b.store.Requests()
		require.NoError(t, b.Enter(t.Context(), "op-1"))
		require.NoError(t, b.Active(t.Context(), "op-1"))
		require.Equal(t, before, b.store.Requests(), "an open one costs nothing")
		require.Empty(t, b.cleaned)
	})
}

func TestALostLeaseIsLatchedCleanedUpAndOpenedAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.NoError(t, b.Enter(t.Context(), "op-1"))
		require.NoError(t, b.Active(t.Context(), "op-1"))
		b.store.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
		time.Sleep(lease.DefaultTTL)
		b.store.Inject(nil)
		require.ErrorIs(t, b.Check("op-1"), ErrNoController)
		require.ErrorIs(t, b.Check("op-1"), lease.ErrLost)

		b.cleanUp = func(string) error { return errors.New("busy") }
		require.ErrorContains(t, b.Enter(t.Context(), "op-1"), "busy")
		_, state := b.record(t)
		require.Equal(t, execLost, state)
		require.ErrorIs(t, b.Check("op-1"), ErrNoController)

		b.cleanUp = func(string) error { return nil }
		require.NoError(t, b.Enter(t.Context(), "op-1"))
		require.NoError(t, b.Check("op-1"))
		require.Equal(t, []string{"op-1", "op-1"}, b.cleaned)
	})
}

// late is a store that carries a write out although its sender has gone.
type late struct{ *memstore.Store }

func (s late) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	time.Sleep(time.Minute)
	return s.Store.Put(context.WithoutCancel(ctx), key, body, cond)
}

func TestALeaseThatComesLaterThanItsPassIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.NoError(t, b.Close(t.Context()))
		b.boot(t, late{b.store})
		b.cfg.TTL = lifeLong
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.Enter(ctx, "op-1"), context.DeadlineExceeded)
		require.ErrorIs(t, b.Check("op-1"), ErrNoController)
		time.Sleep(3 * time.Minute)
		obj, err := b.store.Get(t.Context(), "control/exec/h.example/op-1/box-1.json")
		require.NoError(t, err)
		require.Contains(t, string(obj.Body), `"free":true`)
	})
}

func TestAPassWaitsForNoReleaseBeyondItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.NoError(t, b.Enter(t.Context(), "op-1"))
		b.store.Inject(func(r memstore.Request) memstore.Fault {
			if r.Op == memstore.OpPut {
				time.Sleep(5 * time.Second)
			}
			return memstore.None
		})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.Finish(ctx, ""), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, b.Check("op-1"), ErrNoController)
		require.NoError(t, b.Finish(t.Context(), ""))
		require.Empty(t, entriesOf(t, b.dir))
		time.Sleep(time.Minute)
	})
}

func TestACleanUpOfAnotherOperationCountsForNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		require.NoError(t, b.Enter(t.Context(), "op-1"))
		require.NoError(t, b.Enter(t.Context(), "op-2"))
		b.over = func(op string) (bool, error) { return op == "op-2", nil }
		b.cleanUp = func(op string) error {
			if op == "op-2" {
				time.Sleep(2 * time.Second)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.Finish(ctx, ""), context.DeadlineExceeded)
		synctest.Wait()
		b.over = func(string) (bool, error) { return true, nil }
		b.cleanUp = func(op string) error { return errors.New("not " + op) }
		require.ErrorContains(t, b.Finish(t.Context(), ""), "not op-1")
		require.Contains(t, b.journals(t), "op-1", "it was not cleaned up in this call")
	})
}

func (b *bench) journals(t *testing.T) []string {
	t.Helper()
	ops, damaged, err := b.g.participations()
	require.NoError(t, err)
	require.Empty(t, damaged)
	return ops
}

func TestAParticipationEndsOnlyWhereTheClaimSaysSo(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.Enter(t.Context(), "op-1"))
	require.ErrorContains(t, b.g.Forget(t.Context(), "op-1"), "still exists")
	b.over = func(string) (bool, error) { return false, errors.New("no claim") }
	require.ErrorContains(t, b.Finish(t.Context(), ""), "no claim")
	b.over = func(string) (bool, error) { return false, nil }
	require.NoError(t, b.Finish(t.Context(), ""))
	require.Equal(t, []string{"op-1", "op-1"}, b.journals(t), "its journal and its record")
	b.over = func(string) (bool, error) { return true, nil }
	require.NoError(t, b.Finish(t.Context(), ""))
	require.Empty(t, b.journals(t))
}

func TestAWriteThatACrashCutShortIsClearedToo(t *testing.T) {
	b := newBench(t)
	b.g.disk.before = crashAt(9) // the record's rename
	require.ErrorIs(t, b.Enter(t.Context(), "op-1"), errCrash)
	b.boot(t, b.store)
	require.Len(t, entriesOf(t, b.dir), 1)
	require.NoError(t, b.Finish(t.Context(), ""))
	require.Empty(t, entriesOf(t, b.dir))
}

func TestADamagedEntryHidesNoOtherAndADamagedRecordStays(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.Enter(t.Context(), "op-1"))
	require.NoError(t, b.Close(t.Context()))
	bad := filepath.Join(b.dir, ".participations", "h.example_op-0.json")
	require.NoError(t, os.WriteFile(bad, []byte("?"), 0o600))
	b.boot(t, b.store)
	require.NoError(t, b.Finish(t.Context(), ""))
	require.Equal(t, []string{"op-1"}, b.cleaned)
	require.FileExists(t, bad)
	require.ErrorIs(t, b.Enter(t.Context(), "op-0"), ErrMalformed)

	require.NoError(t, b.Enter(t.Context(), "op-2"))
	require.NoError(t, os.WriteFile(b.g.execPath(), []byte("?"), 0o600))
	require.ErrorIs(t, b.Finish(t.Context(), ""), ErrMalformed)
	require.ErrorIs(t, b.Enter(t.Context(), "op-3"), ErrMalformed)
	require.FileExists(t, b.g.execPath())
	require.ErrorIs(t, b.g.Forget(t.Context(), "op-2"), ErrMalformed)
}

func TestNothingIsEnteredAfterClose(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.Enter(t.Context(), "op-1"))
	require.NoError(t, b.Close(t.Context()))
	require.ErrorIs(t, b.Check("op-1"), ErrNoController)
	require.ErrorIs(t, b.Enter(t.Context(), "op-1"), ErrNoController)
	op, _ := b.record(t)
	require.Equal(t, "op-1", op, "records stay for the next process")
	_, err := NewExecution(ExecutionConfig{})
	require.Error(t, err)
}

// TestAFailedEntryLeavesThePredecessorsRecord: nobody has seen that operation end,
// so that no update begins.
func TestAFailedEntryLeavesThePredecessorsRecord(t *testing.T) {
	for name, appears := range map[string]bool{"an update is there": false, "an update appears meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.over = func(string) (bool, error) { return false, nil }
			require.NoError(t, b.Enter(t.Context(), "op-1"))
			require.NoError(t, b.Active(t.Context(), "op-1"))
			root, err := os.OpenRoot(b.dir)
			require.NoError(t, err)
			defer root.Close()
			mark := func() { require.NoError(t, updateGate{dir: b.dir}.mark(root, false)) } // and has not looked yet
			writes := 0
			if !appears {
				mark()
			}
			b.g.disk.before = func(step, path string) error {
				if step == "rename" && path == b.g.execPath()+tmpSuffix {
					if writes++; appears && writes == 1 {
						mark()
					}
				}
				return nil
			}
			require.ErrorIs(t, b.Enter(t.Context(), "op-2"), ErrUpdating)
			op, _ := b.record(t)
			require.Equal(t, "op-1", op)
			require.Error(t, vacant(root))
			if !appears {
				require.Zero(t, writes, "a crash meanwhile finds it, too")
			}
			require.NoError(t, b.Finish(t.Context(), "op-2"))
			require.Error(t, vacant(root))
		})
	}
}

// TestWhoTakesPartIsFoundByEitherFile, though one cannot be read.
func TestWhoTakesPartIsFoundByEitherFile(t *testing.T) {
	dir := t.TempDir()
	hosts, damaged, err := Participants(dir)
	require.NoError(t, err)
	require.Empty(t, hosts)
	require.Empty(t, damaged)
	for _, host := range []string{"b.example", "a.example"} {
		g, err := Open(dir, host, tester)
		require.NoError(t, err)
		_, err = g.Acknowledge(t.Context(), "op-1", time.Now())
		require.NoError(t, err)
	}
	require.NoError(t, makeDir(execDir(dir)))
	for _, name := range []string{"b.example.json", "c.example.json", "d.example.json" + tmpSuffix} {
		require.NoError(t, os.WriteFile(filepath.Join(execDir(dir), name), []byte("torn"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(participationsDir(dir), "e.example_op-1.json"), []byte("torn"), 0o600))
	hosts, damaged, err = Participants(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"a.example", "b.example", "c.example"}, hosts)
	require.Len(t, damaged, 1)
	require.NoError(t, os.RemoveAll(execDir(dir)))
	require.NoError(t, os.WriteFile(execDir(dir), nil, 0o600))
	_, _, err = Participants(dir)
	require.Error(t, err, "a list that cannot be read is not empty")
}
