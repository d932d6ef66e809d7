package stopevidence

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// Bounds of a look at one task's memory.
const (
	rereadings   = 8       // of its mappings, where they change meanwhile
	maxStrangers = 1 << 14 // files that one looker remembers
)

// mapping is a file that a task has mapped.
type mapping struct {
	inode        // as maps prints it, which on some file systems is not what a stat says
	name  []byte // of its link in map_files
}

// memory looks at the files that a task has mapped.
func (p *process) memory(tid, dir int) error {
	for range rereadings {
		held, moved, err := p.mappings(dir)
		if err != nil {
			return err
		}
		if moved {
			continue
		}
		for path, f := range held {
			if err := p.found(Holder{PID: p.pid, TID: tid, FD: -1, Path: path}, f); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("its mappings changed during each of %d looks", rereadings)
}

// mappings lists the subject's files that are mapped. What maps prints names a
// file no better than it can be told from others by: only a stat through the link
// of a mapping says which it is. But most processes map the same few libraries,
// so a file that was found to be a stranger is not asked for again. One with an
// inode number of the subject's always is, since two files may print the same.
//
// A mapping whose link is gone may only have got other bounds: moved.
func (p *process) mappings(dir int) (held map[string]file, moved bool, err error) {
	p.maps.Reset()
	if err := readInto(&p.maps, dir, "maps"); err != nil {
		return nil, false, err
	}
	for line := range bytes.Lines(p.maps.Bytes()) {
		m, err := parseMapping(line)
		if err != nil {
			return nil, false, err
		}
		if m.ino == 0 || p.strangers[m.inode] && !p.numbers[m.ino] {
			continue
		}
		f, path, ours, err := p.match(dir, "map_files/"+string(m.name))
		switch {
		case errors.Is(err, unix.ENOENT):
			moved = true
		case err != nil:
			return nil, false, fmt.Errorf("mapping %s: %w", m.name, err)
		case !ours:
			if len(p.strangers) < maxStrangers {
				p.strangers[m.inode] = true
			}
		default:
			if held == nil {
				held = map[string]file{}
			}
			held[path] = f
		}
	}
	return held, moved, nil
}

// parseMapping reads a line such as
//
//	7f00a000-7f00b000 r--p 00000000 fe:00 131 /usr/lib/libc.so.6
//
// The name of the link has the same bounds without leading zeros.
func parseMapping(line []byte) (mapping, error) {
	bounds, rest, _ := bytes.Cut(line, []byte(" "))
	_, rest, _ = bytes.Cut(rest, []byte(" ")) // permissions
	_, rest, _ = bytes.Cut(rest, []byte(" ")) // offset
	dev, rest, _ := bytes.Cut(rest, []byte(" "))
	number, _, _ := bytes.Cut(bytes.TrimSuffix(rest, []byte("\n")), []byte(" "))
	ino, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		return mapping{}, fmt.Errorf("maps has the line %.200q", line)
	}
	if ino == 0 {
		return mapping{}, nil
	}
	from, to, _ := bytes.Cut(bounds, []byte("-"))
	high, low, _ := bytes.Cut(dev, []byte(":"))
	major, errMajor := strconv.ParseUint(string(high), 16, 32)
	minor, errMinor := strconv.ParseUint(string(low), 16, 32)
	if err := errors.Join(errMajor, errMinor); err != nil {
		return mapping{}, fmt.Errorf("maps has the line %.200q: %w", line, err)
	}
	return mapping{
		inode: inode{dev: unix.Mkdev(uint32(major), uint32(minor)), ino: ino},
		name:  bytes.Join([][]byte{bytes.TrimLeft(from, "0"), bytes.TrimLeft(to, "0")}, []byte("-")),
	}, nil
}
