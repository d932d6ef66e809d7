package stopevidence

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// looker looks at one process at a time, in memory that it keeps.
type looker struct {
	*scan
	tasks, links *list
	maps         bytes.Buffer
	strangers    map[inode]bool // mapped files that were found not to be the subject's, as maps names them
	link         [unix.PathMax]byte
}

func newLooker(s *scan) *looker {
	return &looker{scan: s, tasks: newList(), links: newList(), strangers: map[inode]bool{}}
}

// process is one that is looked at. Its directory stays that of the process when
// its number is given to another.
type process struct {
	*looker
	pid, dir int
	own      []Descriptor // the replicator's, as the leader's table showed them
	mapped   int          // files that go with those
}

// process looks at one process: at its descriptors and its memory, and then at
// those of its threads that have their own. In this order, since what the leader
// gave to a thread is found there.
func (l *looker) process(pid int) error {
	dir, err := openDir(l.proc, strconv.Itoa(pid))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	p := &process{looker: l, pid: pid, dir: dir}
	if err := p.descriptors(pid, dir, "fd"); err != nil {
		return err
	}
	if err := p.memory(pid, dir); err != nil {
		return err
	}
	tasks := 0
	err = l.tasks.each(dir, "task", func(dir int, name string) error {
		tasks++
		if err := p.thread(dir, name); err != nil && !exited(err) {
			return fmt.Errorf("task %s: %w", name, err)
		}
		return nil
	})
	l.count(1, tasks, len(p.own), p.mapped)
	return err
}

// newcomer looks at a process that appeared during the pass, and says whether it
// was there to the end.
func (l *looker) newcomer(pid int) error {
	err := l.process(pid)
	st, there := readStat(l.proc, strconv.Itoa(pid)+"/stat")
	if err != nil || there != nil || st.exiting {
		l.lost.Store(true)
	}
	return err
}

// thread looks at what a thread does not share with its leader. All of it is
// foreign: nothing exempts it.
func (p *process) thread(tasks int, name string) error {
	tid, err := strconv.Atoi(name)
	if err != nil || tid == p.pid {
		return err
	}
	shared, err := p.sharesTable(tid)
	if err != nil {
		return err
	}
	if !shared {
		if err := p.descriptors(tid, tasks, name+"/fd"); err != nil {
			return err
		}
	}
	// The memory is one, but a leader that exited before its threads shows none.
	if shared, err = same(kcmpVM, p.pid, tid, 0); err != nil || shared {
		return err
	}
	// A thread's map_files are only in the directory that goes by its own number.
	dir, err := openDir(p.proc, name)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return p.memory(tid, dir)
}

// sharesTable reports whether the thread's descriptors are the leader's: one
// table, and in it, by the thread's numbers too, the replicator's descriptors.
func (p *process) sharesTable(tid int) (bool, error) {
	shared, err := same(kcmpFiles, p.pid, tid, 0)
	for _, d := range p.own {
		if err != nil || !shared {
			break
		}
		if shared, err = same(kcmpFile, p.pid, tid, d.FD); errors.Is(err, unix.EBADF) {
			shared, err = false, nil
		}
	}
	return shared, err
}

// descriptors looks at a task's table. Only the leader's has exempt ones.
func (p *process) descriptors(tid, dir int, name string) error {
	return p.links.each(dir, name, func(dir int, name string) error {
		f, path, ours, err := p.match(dir, name)
		if errors.Is(err, unix.ENOENT) || err == nil && !ours {
			return nil // closed since, or something else
		}
		if err != nil {
			return fmt.Errorf("descriptor %s: %w", name, err)
		}
		fd, err := strconv.Atoi(name)
		if err != nil {
			return err
		}
		return p.found(Holder{PID: p.pid, TID: tid, FD: fd, Path: path}, f)
	})
}

// match says whether what a link of the kernel's leads to is a file of the
// subject, and how the kernel names it.
func (l *looker) match(dir int, name string) (f file, path string, ours bool, err error) {
	if f, err = statFile(dir, name); err != nil {
		return file{}, "", false, err
	}
	born, known := l.files[f.inode]
	ours = known && (born == 0 || f.born == 0 || born == f.born)
	if !ours && f.links > 0 {
		return f, "", false, nil
	}
	// It is ours, or it is deleted and only its name can tell.
	n, err := unix.Readlinkat(dir, name, l.link[:])
	if errors.Is(err, unix.ENAMETOOLONG) {
		return f, "", ours, nil // longer than any name of the subject
	}
	if err != nil {
		return file{}, "", false, err
	}
	path = string(l.link[:n])
	return f, path, ours || l.deleted[path], nil
}

// found notes a holder, or that what holds is the replicator's.
func (p *process) found(h Holder, f file) error {
	st, err := readStat(p.dir, "stat")
	if err != nil {
		return err
	}
	h.Start, h.Command = st.start, st.command
	is := func(d Descriptor) bool { return inode{d.Dev, d.Ino} == f.inode }
	if h.FD < 0 && slices.ContainsFunc(p.own, is) {
		p.mapped++
		return nil
	}
	// Exactly this descriptor of this file, in this process and no later one with
	// its number.
	d, ok := p.exempt[slot{h.PID, h.FD}]
	if ok && h.TID == h.PID && d.Start == h.Start && is(d) {
		p.own = append(p.own, d)
		return nil
	}
	p.hold(h)
	return nil
}
