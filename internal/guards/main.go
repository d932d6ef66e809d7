// Guards writes docs/guards.md: each guard of the packages that decide, and the
// first of their tests that fails without it.
//
// A guard is a case of a switch without a tag, or an if, whose body does
// nothing but return or assign an error: a sentinel such as ErrAlreadyRecorded,
// or one that is made there, or by a function that only makes errors. A
// condition about the failure of something else (err != nil, errors.Is) passes
// it on and is no guard, unless the if itself calls a check: a function of the
// package, or a Check of another. A default is no guard: it refuses what no
// other case took; and neither is the check that a function ends with.
//
// A package is built once, over copies of its files in which each guard can be
// turned off, and its tests run once for each guard. A guard that no test needs
// is MISSING, and the exit code is 1, unless allowed.txt says why turning it off
// changes nothing.
//
//	go run ./internal/guards [-write] [packages]      run, and write the table
//	go run ./internal/guards -check                   compare the table with the source
//	go run ./internal/guards -verify 20 [packages]    run the table's tests of 20 guards
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
)

// rooms is what is looked at unless the command line names packages.
var rooms = []string{"hostclaim", "termfence", "roster", "boxid", "stopevidence", "resolution", "boxvolumes"}

// existing returns the rooms that there are.
func existing(root string) []string {
	return slices.DeleteFunc(slices.Clone(rooms), func(dir string) bool {
		_, err := os.Stat(filepath.Join(root, dir))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// The files of the command, below the module's root.
const (
	tableFile   = "docs/guards.md"
	allowedFile = "internal/guards/allowed.txt"
)

// options is the command line, and where it runs.
type options struct {
	root         string // of the module
	write, check bool
	verify       int // how many guards to try; all if zero
	parallel     int
	checks       int // of a property
	timeout      time.Duration
	dirs         []string // below root
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.BoolVar(&o.write, "write", false, "write "+tableFile)
	flag.BoolVar(&o.check, "check", false, "only compare "+tableFile+" with the source")
	flag.IntVar(&o.verify, "verify", 0, "try only so many guards, taken at random")
	flag.IntVar(&o.parallel, "p", runtime.GOMAXPROCS(0), "guards tried at a time")
	flag.IntVar(&o.checks, "checks", 200, "sequences of a property test")
	flag.DurationVar(&o.timeout, "timeout", time.Minute, "of one run of a package's tests")
	flag.Parse()
	if (o.write || o.check) && (flag.NArg() > 0 || o.verify > 0) {
		fmt.Fprintln(os.Stderr, "guards: -write and -check are about every guard of every package")
		os.Exit(2)
	}
	o.root, o.dirs = ".", flag.Args()
	if len(o.dirs) == 0 {
		o.dirs = existing(o.root)
	}
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "guards:", err)
		stop()
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context, out io.Writer) error {
	sources, err := o.sources()
	if err != nil {
		return err
	}
	table, err := readTable(filepath.Join(o.root, tableFile))
	if err != nil {
		return err
	}
	allowed, err := readAllowed(filepath.Join(o.root, allowedFile))
	if err != nil {
		return err
	}
	if o.check {
		return check(sources, table, allowed)
	}
	if o.verify > 0 {
		sample(sources, o.verify)
	}
	var rows []row
	var wrong []error
	for _, s := range sources {
		tried, err := o.try(ctx, s, table)
		if err != nil {
			return errors.Join(append(wrong, err)...)
		}
		for _, r := range tried {
			now, err := settle(r, allowed)
			if was := table[r.guard]; o.verify > 0 && was != now.test {
				err = fmt.Errorf("%s: the table says %q, it is %q", r.guard, was, now.test)
			}
			rows, wrong = append(rows, now), append(wrong, err)
		}
		fmt.Fprintf(out, "%s: %d guards\n", s.dir, len(tried))
	}
	if o.write {
		wrong = append(wrong, os.WriteFile(filepath.Join(o.root, tableFile), formatTable(rows), 0o644))
	}
	return errors.Join(wrong...)
}

// sources finds the guards of the packages.
func (o options) sources() ([]*source, error) {
	var all []*source
	for _, dir := range o.dirs {
		s, err := find(o.root, filepath.ToSlash(dir))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// sample leaves n guards, taken at random.
func sample(sources []*source, n int) {
	var every []guard
	for _, s := range sources {
		for _, x := range s.sites {
			every = append(every, x.guard)
		}
	}
	rand.Shuffle(len(every), func(i, j int) { every[i], every[j] = every[j], every[i] })
	every = every[:min(n, len(every))]
	for _, s := range sources {
		s.sites = slices.DeleteFunc(s.sites, func(x site) bool { return !slices.Contains(every, x.guard) })
	}
}

// try turns off each guard of s, and says which test failed.
func (o options) try(ctx context.Context, s *source, table map[guard]string) ([]row, error) {
	if len(s.sites) == 0 {
		return nil, nil
	}
	tmp, err := os.MkdirTemp("", "guards-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	t, err := s.compile(ctx, tmp, o.checks, o.timeout)
	if err != nil {
		return nil, err
	}
	if test, err := t.killer(ctx, none, ""); err != nil || test != "" {
		return nil, fmt.Errorf("%s: %s fails with every guard on: %w", s.dir, test, cmp.Or(err, errors.New("nothing to learn")))
	}
	rows, errs := make([]row, len(s.sites)), make([]error, len(s.sites))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(o.parallel, 1) {
		workers.Go(func() {
			for i := range next {
				g := s.sites[i].guard
				rows[i].guard = g
				rows[i].test, errs[i] = t.killer(ctx, i, table[g])
			}
		})
	}
	for i := range s.sites {
		next <- i
	}
	close(next)
	workers.Wait()
	return rows, errors.Join(errs...)
}
