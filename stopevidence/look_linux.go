package stopevidence

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Bounds of a look.
const (
	agreeing = 2       // the passes in a row that must find nothing
	passes   = 16      // that one look makes at most
	maxPath  = 3 << 10 // bytes of the database's path, so that the kernel can name its files
	maxKnown = 10_000  // descriptors that a subject or a replicator names
)

// look is one complete look at the machine.
func look(ctx context.Context, s Subject, exempt []Descriptor) ([]Check, error) {
	checks, err := observe(ctx, s, exempt)
	if held := (*HeldError)(nil); err != nil && !errors.As(err, &held) {
		err = fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	if err != nil {
		return nil, fmt.Errorf("stopevidence: %s: %w", s.Database, err)
	}
	return checks, nil
}

// observe asks for the cgroup first, which is cheap, and again last: what entered
// it during the passes has not stopped.
func observe(ctx context.Context, s Subject, exempt []Descriptor) ([]Check, error) {
	if err := checkSubject(s, exempt); err != nil {
		return nil, err
	}
	proc, err := openProc()
	if err != nil {
		return nil, err
	}
	defer unix.Close(proc)
	if _, err := emptyCgroup(ctx, s.Cgroup); err != nil {
		return nil, err
	}
	holders, err := newScan(proc, s, exempt).agree(ctx)
	if err != nil {
		return nil, err
	}
	group, err := emptyCgroup(ctx, s.Cgroup)
	if err != nil {
		return nil, err
	}
	return []Check{
		{Name: CgroupEmpty, Passed: true, Saw: group},
		{Name: NoHolders, Passed: true, Saw: holders},
	}, nil
}

func checkSubject(s Subject, exempt []Descriptor) error {
	for _, f := range []struct{ field, path string }{{"Cgroup", s.Cgroup}, {"Database", s.Database}} {
		if !filepath.IsAbs(f.path) || filepath.Clean(f.path) != f.path || len(f.path) > maxPath {
			return fmt.Errorf("%s is %.220q, expected a clean absolute path of at most %d bytes", f.field, f.path, maxPath)
		}
	}
	if n := max(len(s.Known), len(exempt)); n > maxKnown {
		return fmt.Errorf("%d descriptors are named, expected at most %d", n, maxKnown)
	}
	return nil
}

func emptyCgroup(ctx context.Context, dir string) (saw string, err error) {
	c, err := readCgroup(ctx, dir)
	if err != nil {
		return "", err
	}
	if !c.empty() {
		return "", &HeldError{Cgroup: c.String()}
	}
	return c.String(), nil
}

// agree makes passes until two in a row found nothing but the replicator's.
//
// Two, since a process may open a file after the first has looked at it, or be
// handed a descriptor by one that the first had not looked at yet. Whoever has it
// still is found by the second. Not two that saw the same processes, which a
// machine that starts hundreds a second never shows.
//
// A pass in which the numbers of processes may have started over counts for
// nothing: it may have taken a new process for one with the same number that it
// had looked at.
func (s *scan) agree(ctx context.Context) (saw string, err error) {
	agreed := 0
	for range passes {
		before, err := readNumbers(s.proc)
		if err != nil {
			return "", err
		}
		seen, err := s.pass(ctx)
		if err != nil {
			return "", err
		}
		if len(seen.held) > 0 {
			return "", &HeldError{Holders: seen.held, More: seen.more}
		}
		after, err := readNumbers(s.proc)
		if err != nil {
			return "", err
		}
		if agreed++; after.startedOver(before) {
			agreed = 0
		}
		if agreed == agreeing {
			return fmt.Sprintf("%d passes agree, the last over %d processes and %d tasks: %d descriptors and %d mappings, all the replicator's",
				agreeing, seen.processes, seen.tasks, seen.descriptors, seen.mappings), nil
		}
	}
	return "", fmt.Errorf("the numbers of processes started over again and again in %d passes", passes)
}
