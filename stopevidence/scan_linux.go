package stopevidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// slot is one descriptor's place.
type slot struct{ pid, fd int }

// scan looks through every task of the machine for holders of a subject's files.
type scan struct {
	proc     int // the open /proc
	database string
	files    map[inode]int64 // what may not be held; by when it was made, 0: whenever
	numbers  map[uint64]bool // the inode numbers of files, on whatever device
	deleted  map[string]bool // what the kernel calls a file of the subject that is deleted
	exempt   map[slot]Descriptor

	lost atomic.Bool // of the round that runs: somebody had gone before the look at it ended

	mu   sync.Mutex
	sums sums
}

// sums is what a pass has seen.
type sums struct {
	held                  []Holder
	more                  int // holders that are not in held
	processes, tasks      int
	descriptors, mappings int // the replicator's
}

func newScan(proc int, s Subject, exempt []Descriptor) *scan {
	sc := &scan{
		proc: proc, database: s.Database,
		files: map[inode]int64{}, numbers: map[uint64]bool{}, deleted: map[string]bool{}, exempt: map[slot]Descriptor{},
	}
	for _, d := range exempt {
		sc.exempt[slot{d.PID, d.FD}] = d
		sc.add(inode{d.Dev, d.Ino}, d.Born)
	}
	for _, d := range s.Known {
		sc.add(inode{d.Dev, d.Ino}, d.Born)
	}
	return sc
}

func (s *scan) add(i inode, born int64) {
	s.files[i] = born
	s.numbers[i.ino] = true
}

// locate adds the files that are at the subject's paths now.
func (s *scan) locate() error {
	dir, base := filepath.Split(s.database)
	// The kernel names a file by its real directory.
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, unix.ENOENT) {
		real, err = dir, nil
	}
	if err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		for _, dir := range []string{dir, real} {
			s.deleted[filepath.Join(dir, base+suffix)+" (deleted)"] = true
		}
		f, ok, err := statPath(s.database + suffix)
		if err != nil {
			return err
		}
		if ok {
			s.add(f.inode, 0)
		}
	}
	return nil
}

// maxRounds bounds how often a pass goes after processes that appear.
const maxRounds = 10_000

// pass looks at every process once, and then at those that have appeared
// meanwhile, until all of a round's outlived the look at them.
//
// So what a process hands to its child as it goes is found: whoever held a file
// and was gone before it was looked at makes a further round, in which its child
// is new. Somebody who starts processes by the hundreds adds rounds, but no more
// than until one is fast enough, since a round is only of those that are new.
func (s *scan) pass(ctx context.Context) (sums, error) {
	s.sums = sums{}
	if err := s.locate(); err != nil {
		return sums{}, err
	}
	lookers := make([]*looker, runtime.GOMAXPROCS(0))
	for i := range lookers {
		lookers[i] = newLooker(s)
	}
	looked := map[int]bool{}
	if err := s.round(ctx, lookers, looked, (*looker).process); err != nil {
		return sums{}, err
	}
	for range maxRounds {
		s.lost.Store(false)
		if err := s.round(ctx, lookers, looked, (*looker).newcomer); err != nil {
			return sums{}, err
		}
		if !s.lost.Load() || len(s.sums.held) > 0 {
			slices.SortFunc(s.sums.held, func(a, b Holder) int {
				return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID), cmp.Compare(a.FD, b.FD))
			})
			return s.sums, nil
		}
	}
	return sums{}, fmt.Errorf("processes appeared faster than they could be looked at, in %d rounds", maxRounds)
}

// round looks at every process that was not looked at yet.
func (s *scan) round(ctx context.Context, lookers []*looker, looked map[int]bool, look func(*looker, int) error) error {
	list := newList()
	if err := list.open(s.proc, "."); err != nil {
		return err
	}
	defer list.close()
	for {
		names, err := list.next()
		if err != nil || len(names) == 0 {
			return err
		}
		var left []int
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil && !looked[pid] {
				looked[pid] = true
				left = append(left, pid)
			}
		}
		if err := share(ctx, lookers, left, look); err != nil {
			return err
		}
	}
}

// share has the lookers look at some processes, each at the next that is left.
func share(ctx context.Context, lookers []*looker, pids []int, look func(*looker, int) error) error {
	var next atomic.Int64
	var group errgroup.Group
	for _, l := range lookers[:min(len(lookers), len(pids))] {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(pids) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := look(l, pids[i]); err != nil && !exited(err) {
					return fmt.Errorf("process %d: %w", pids[i], err)
				}
			}
		})
	}
	return group.Wait()
}

// exited reports whether an error says that the task is no more.
func exited(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// hold notes a holder.
func (s *scan) hold(h Holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sums.held) == maxHolders {
		s.sums.more++
		return
	}
	s.sums.held = append(s.sums.held, h)
}

// count adds to what the pass has seen.
func (s *scan) count(processes, tasks, descriptors, mappings int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums.processes += processes
	s.sums.tasks += tasks
	s.sums.descriptors += descriptors
	s.sums.mappings += mappings
}
