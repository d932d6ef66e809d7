package hostfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// racyWindow is how long after a change another one may leave the same times.
const racyWindow = time.Second

// reading is the last stable read of a file: as long as the file has this stat,
// its content has this digest.
type reading struct {
	stat stat
	sum  string
}

// result is what a found path comes to.
type result struct {
	entry    Entry
	vanished bool // a file that was gone when it was to be read
	reading  reading
}

// examineAll turns what was found into entries, reading and uploading up to
// Config.Parallel files at a time.
func (p *Publisher) examineAll(ctx context.Context, v view) ([]result, error) {
	results := make([]result, len(v.found))
	known := sync.OnceValue(p.contents)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.cfg.Parallel)
	for i := range v.found {
		f := &v.found[i]
		if r, done := p.unread(f); done {
			results[i] = r
			continue
		}
		group.Go(func() (err error) {
			results[i], err = p.examineFile(ctx, f, known)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	p.remember(v, results)
	return results, nil
}

// remember keeps what was read stably, for the files that are there.
func (p *Publisher) remember(v view, results []result) {
	if v.whole {
		clear(p.read)
	}
	for i := range results {
		delete(p.read, v.found[i].name)
		if r := results[i].reading; r.sum != "" {
			p.read[v.found[i].name] = r
		}
	}
}

// unread answers for everything but a file whose content must be read.
func (p *Publisher) unread(f *found) (result, bool) {
	before, published := p.durable.get(f.name)
	switch {
	case f.kind == KindFile && f.skipped == "" && f.stat.size > p.cfg.MaxFile:
		f.skipped = skipTooLarge
	case f.kind == KindFile && f.skipped == "":
		last, was := p.read[f.name]
		if !was || last.stat != f.stat || !published || last.sum != before.SHA256 || before.Torn {
			return result{}, false
		}
		e := f.entry()
		e.Size, e.SHA256, e.Object = before.Size, before.SHA256, before.Object
		return result{entry: e, reading: last}, true
	}
	if f.kind == KindFile {
		return result{entry: skippedFile(f, before, published)}, true
	}
	return result{entry: f.entry()}, true
}

// skippedFile is the entry of a file that is not kept: its last kept content
// stays, with a word that it is not the current one.
func skippedFile(f *found, before Entry, published bool) Entry {
	if published && before.Kind == KindFile && before.Object != "" {
		before.Skipped, before.Seq = f.skipped, 0
		return before
	}
	e := Entry{Kind: KindFile, Skipped: f.skipped}
	e.setName(f.name)
	return e
}

// examineFile reads a file until it holds still, and sees to it that an object
// holds its content. One that never does is copied as it is read, and torn.
func (p *Publisher) examineFile(ctx context.Context, f *found, known func() map[string]string) (result, error) {
	for range stableReads {
		r, err := p.tryFile(ctx, f, known)
		if !errors.Is(err, errChanged) {
			return r, err
		}
	}
	return p.tornFile(ctx, f, known)
}

// tryFile reads the file once. It fails with [errChanged] where the file changed
// meanwhile.
func (p *Publisher) tryFile(ctx context.Context, f *found, known func() map[string]string) (result, error) {
	start := time.Now()
	file, before, err := p.openFile(f.name)
	if err != nil {
		return p.failed(f, err)
	}
	defer file.Close()
	c, err := readContent(file, before.Size())
	if err != nil {
		return p.failed(f, err)
	}
	after, err := file.Stat()
	if err != nil {
		return p.failed(f, err)
	}
	was := *f
	was.stat = statOf(before)
	if statOf(after) != was.stat || c.size != was.stat.size {
		return result{}, errChanged
	}
	r, err := p.keep(ctx, &was, c, known)
	if last := max(was.stat.modified, was.stat.changed); start.Sub(time.Unix(0, last)) > racyWindow {
		r.reading = reading{stat: was.stat, sum: c.sum}
	}
	return r, err
}

// failed tells a file that is gone from one that cannot be read.
func (p *Publisher) failed(f *found, err error) (result, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return result{vanished: true}, nil
	}
	if isPlatform(f.name) {
		return result{}, err
	}
	p.log.Debug("cannot read a file", "path", f.name, "err", err)
	unreadable := *f
	unreadable.skipped = skipUnreadable
	before, published := p.durable.get(f.name)
	return result{entry: skippedFile(&unreadable, before, published)}, nil
}

// openFile opens the file of an entry. Neither directory can be left. What took
// the place of a file since the scan, and is none, is [errChanged].
func (p *Publisher) openFile(name string) (*os.File, fs.FileInfo, error) {
	dir, below := p.root, strings.TrimPrefix(name, FilesRoot+"/")
	if isPlatform(name) {
		dir, below = p.platform, path.Base(name)
	}
	file, err := dir.OpenFile(below, readFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errChanged
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// tornFile publishes what a file held while it was read once more.
func (p *Publisher) tornFile(ctx context.Context, f *found, known func() map[string]string) (result, error) {
	file, info, err := p.openFile(f.name)
	if err != nil {
		return p.failed(f, err)
	}
	defer file.Close()
	still, err := os.CreateTemp(p.cfg.Platform, ".copy-*")
	if err != nil {
		return result{}, err
	}
	defer still.Close()
	_ = os.Remove(still.Name()) // an open file needs no name, and a crash leaves none
	if _, err := io.Copy(still, io.LimitReader(file, p.cfg.MaxFile)); err != nil {
		return p.failed(f, err)
	}
	c, err := readContent(still, info.Size())
	if err != nil {
		return result{}, err
	}
	torn := *f
	torn.stat = statOf(info)
	r, err := p.keep(ctx, &torn, c, known)
	r.entry.Torn = true
	return r, err
}

// keep makes the entry of a file with this content, which an object then holds.
func (p *Publisher) keep(ctx context.Context, f *found, c *content, known func() map[string]string) (result, error) {
	e := f.entry()
	e.Size, e.SHA256 = c.size, c.sum
	before, published := p.durable.get(f.name)
	if f.name == InstanceKey && published && before.SHA256 != c.sum {
		return result{}, fmt.Errorf("%w: %s", ErrOtherKey, p.platform.Name())
	}
	if published && before.SHA256 == c.sum {
		e.Object = before.Object
		return result{entry: e}, nil
	}
	if e.Object = known()[c.sum]; e.Object != "" {
		return result{entry: e}, nil
	}
	key, err := p.made.do(c.sum, func() (string, error) {
		e.Seq = p.seq.Add(1)
		key, err := p.w.createObject(ctx, e.Seq, c.sum, c, c.size)
		if c.changed {
			err = errChanged
		}
		return key, err
	})
	e.Object = key
	return result{entry: e}, err
}
