package hostdb

import (
	"context"
	"fmt"
	"io"

	"github.com/superfly/ltx"
)

// pages passes over the whole set and calls page for each page of the resulting
// database, in order from 1 and without a hole. Of several files that hold a
// page the newest counts; what lies beyond the newest file's size is left out.
// Every object has been checked whole when it returns nil, and only then does
// what page was given count. data is valid during the call.
func (f *fetched) pages(ctx context.Context, page func(pgno uint32, data []byte) error) error {
	last := f.last()
	cursors := make([]cursor, len(f.sources))
	for i, dec := range f.sources {
		cursors[i] = cursor{dec: dec, data: make([]byte, last.PageSize)}
	}
	out := inOrder{page: page, lock: last.LockPgno(), blank: make([]byte, last.PageSize)}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pgno, data, err := f.lowest(cursors)
		if err != nil {
			return err
		}
		if pgno == 0 {
			break
		}
		if pgno > last.Commit {
			continue
		}
		if err := out.put(pgno, data); err != nil {
			return err
		}
	}
	if out.done < last.Commit {
		return fmt.Errorf("%w: the set ends at page %d of %d", ErrBroken, out.done, last.Commit)
	}
	return f.finish()
}

// lowest takes the lowest page number that any file stands on and returns the
// newest file's page of that number; 0 at the end of all files.
func (f *fetched) lowest(cursors []cursor) (pgno uint32, data []byte, err error) {
	for i := range cursors {
		c := &cursors[i]
		if err := c.fill(); err != nil {
			return 0, nil, f.fault(i, err)
		}
		if !c.done && (pgno == 0 || c.at.Pgno < pgno) {
			pgno = c.at.Pgno
		}
	}
	for i := range cursors {
		if c := &cursors[i]; !c.done && c.at.Pgno == pgno {
			data = c.data
			c.at = ltx.PageHeader{}
		}
	}
	return pgno, data, nil
}

// finish checks each object's own checksum, and that its stream ended there.
func (f *fetched) finish() error {
	for i, dec := range f.sources {
		if err := dec.Close(); err != nil {
			return f.fault(i, err)
		}
	}
	return f.first.check(f.set.Objects[0])
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
