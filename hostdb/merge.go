package hostdb

import (
	"context"
	"fmt"
	"io"

	"github.com/superfly/ltx"
)

// pages passes over a whole set and calls page for each page of the resulting
// database, in order from 1 and without a hole, as merge does.
func (f *fetched) pages(ctx context.Context, page func(pgno uint32, data []byte) error) error {
	last := f.last()
	out := inOrder{page: page, lock: last.LockPgno(), blank: make([]byte, last.PageSize)}
	err := f.merge(ctx, func(pgno uint32, _ int, data []byte) error { return out.put(pgno, data) })
	if err == nil && out.done < last.Commit {
		err = fmt.Errorf("%w: the set ends at page %d of %d", ErrBroken, out.done, last.Commit)
	}
	return err
}

// merge passes over the objects once and calls page for each page that they
// hold, in order, with the number of the object that it is from. Of several that
// hold a page the newest counts; what lies beyond the newest object's size is
// left out. Every object has been checked whole when it returns nil, and only
// then does what page was given count. data is valid during the call.
func (f *fetched) merge(ctx context.Context, page func(pgno uint32, from int, data []byte) error) error {
	last := f.last()
	cursors := make([]cursor, len(f.sources))
	for i, dec := range f.sources {
		cursors[i] = cursor{dec: dec, data: make([]byte, last.PageSize)}
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pgno, from, err := f.lowest(cursors)
		if err != nil {
			return err
		}
		if pgno == 0 {
			return f.finish()
		}
		if pgno > last.Commit {
			continue
		}
		if err := page(pgno, from, cursors[from].data); err != nil {
			return err
		}
	}
}

// lowest takes the lowest page number that any object stands on and returns
// which is the newest one with that page; 0 at the end of all objects.
func (f *fetched) lowest(cursors []cursor) (pgno uint32, from int, err error) {
	for i := range cursors {
		c := &cursors[i]
		if err := c.fill(); err != nil {
			return 0, 0, f.fault(i, err)
		}
		if !c.done && (pgno == 0 || c.at.Pgno < pgno) {
			pgno = c.at.Pgno
		}
	}
	for i := range cursors {
		if c := &cursors[i]; !c.done && c.at.Pgno == pgno {
			from = i
			c.at = ltx.PageHeader{}
		}
	}
	return pgno, from, nil
}

// finish checks each object's own checksum, and that its stream ended there.
func (f *fetched) finish() (err error) {
	for i, dec := range f.sources {
		if err := dec.Close(); err != nil {
			return f.fault(i, err)
		}
	}
	if f.first != nil {
		f.objects[0].SHA256, err = f.first.check(f.objects[0])
	}
	return err
}

// cursor stands on one page of one LTX file.
type cursor struct {
	dec  *ltx.Decoder
	at   ltx.PageHeader // zero: the page was taken
	data []byte
	done bool
}

// fill reads the next page if the last one was taken.
func (c *cursor) fill() error {
	if c.done || !c.at.IsZero() {
		return nil
	}
	err := c.dec.DecodePage(&c.at, c.data)
	if err == io.EOF { // of the pages; a file cut short fails to close
		c.done = true
		return nil
	}
	return err
}

// inOrder passes pages on and refuses a hole. SQLite never writes the lock page,
// so no LTX file holds it: it is passed on blank.
type inOrder struct {
	page  func(pgno uint32, data []byte) error
	done  uint32 // the last page passed on
	lock  uint32
	blank []byte
}

func (o *inOrder) put(pgno uint32, data []byte) error {
	if o.done+1 == o.lock && pgno > o.lock {
		if err := o.page(o.lock, o.blank); err != nil {
			return err
		}
		o.done = o.lock
	}
	if pgno != o.done+1 {
		return fmt.Errorf("%w: page %d follows page %d", ErrBroken, pgno, o.done)
	}
	o.done = pgno
	return o.page(pgno, data)
}
