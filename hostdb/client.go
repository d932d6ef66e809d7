package hostdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/benbjohnson/litestream"
	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/objstore"
)

// client is Litestream's view of one generation. It creates objects and does
// nothing else to the store: no overwrite, no delete, and no listing after the
// first, because it knows every file that it listed or wrote. A write that
// failed is not known until it is confirmed, so a position is never derived from
// an object that another writer may have put there.
type client struct {
	store objstore.Store
	gen   Generation
	base  ltx.TXID
	check func() error
	dir   string // for spool files

	mu     sync.Mutex
	fenced error                                         // sticky
	files  [litestream.SnapshotLevel + 1][]*ltx.FileInfo // by level, in order
}

var _ litestream.ReplicaClient = (*client)(nil)

// newClient lists the generation once.
func newClient(ctx context.Context, s objstore.Store, cfg Config) (*client, error) {
	c := &client{store: s, gen: cfg.Generation, base: ltx.TXID(cfg.Base), check: cfg.Check, dir: cfg.MetaDir}
	listed, err := listLTX(ctx, s, c.gen.Location, c.gen.ID)
	if err != nil {
		return nil, err
	}
	for _, f := range listed {
		c.files[f.level] = append(c.files[f.level], &ltx.FileInfo{
			Level: f.level, MinTXID: f.min, MaxTXID: f.max, Size: f.info.Size, CreatedAt: f.info.ModTime,
		})
	}
	return c, nil
}

// newest is the last transaction of level that is known to be in the store.
func (c *client) newest(level int) ltx.TXID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if files := c.files[level]; len(files) > 0 {
		return files[len(files)-1].MaxTXID
	}
	return 0
}

// checkHolds refuses a generation that holds what this session cannot have
// written, or less than it was prepared with. local is the newest transaction
// that the session made.
func (c *client) checkHolds(local ltx.TXID) error {
	newest := c.newest(0)
	switch {
	case newest < c.base: // Litestream would begin again at TXID 1
		return fmt.Errorf("%w: level 0 ends at TXID %d, below the base %d", ErrBroken, newest, c.base)
	case newest > max(local, c.base):
		return fmt.Errorf("%w: level 0 ends at TXID %d, this session wrote up to %d", ErrFenced, newest, local)
	}
	for level := range c.files {
		if c.newest(level) > newest {
			return fmt.Errorf("%w: level %d ends at TXID %d, level 0 at %d", ErrFenced, level, c.newest(level), newest)
		}
	}
	return nil
}

// endsAt asks the store whether level 0 ends at n.
func (c *client) endsAt(ctx context.Context, n ltx.TXID) error {
	for _, want := range []struct {
		txid  ltx.TXID
		there bool
	}{{n, true}, {n + 1, false}} {
		key, there := c.key(ltxName{0, want.txid, want.txid}), false
		for info, err := range c.store.List(ctx, key) {
			if err != nil {
				return err
			}
			there = there || info.Key == key
		}
		if there != want.there {
			return fmt.Errorf("level 0 does not end at TXID %d: %s listed: %t", n, key, there)
		}
	}
	return nil
}

// fence returns why nothing more is uploaded, nil while there is no reason.
func (c *client) fence() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fenced
}

// LTXFiles implements [litestream.ReplicaClient] from what is known.
func (c *client) LTXFiles(_ context.Context, level int, seek ltx.TXID, _ bool) (ltx.FileIterator, error) {
	if level < 0 || level >= len(c.files) {
		return nil, fmt.Errorf("%w: level %d", errBadName, level)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	from, _ := slices.BinarySearchFunc(c.files[level], seek, func(f *ltx.FileInfo, t ltx.TXID) int {
		if f.MinTXID < t {
			return -1
		}
		return 1
	})
	return ltx.NewFileInfoSliceIterator(slices.Clone(c.files[level][from:])), nil
}

// OpenLTXFile implements [litestream.ReplicaClient]. An absent file is
// [os.ErrNotExist].
func (c *client) OpenLTXFile(ctx context.Context, level int, minTXID, maxTXID ltx.TXID, offset, size int64) (io.ReadCloser, error) {
	key := c.key(ltxName{level, minTXID, maxTXID})
	r, _, err := openAny(ctx, c.store, key, "", offset)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	if err != nil || size <= 0 {
		return r, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r, size), r}, nil
}

// WriteLTXFile implements [litestream.ReplicaClient]: it creates one object of
// this generation, after Check. The same bytes again are success; other bytes
// fence the client for good.
func (c *client) WriteLTXFile(ctx context.Context, level int, minTXID, maxTXID ltx.TXID, r io.Reader) (*ltx.FileInfo, error) {
	name := ltxName{level, minTXID, maxTXID}
	if err := c.allow(name); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	body, err := spool(r, c.dir)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	defer body.discard()
	h, err := headerOf(body)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	if h.MinTXID != minTXID || h.MaxTXID != maxTXID {
		return nil, fmt.Errorf("write %s: %w: the body holds TXIDs %s to %s", name, errBadName, h.MinTXID, h.MaxTXID)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("write %s: not allowed: %w", name, err)
	}
	if _, err := create(ctx, c.store, c.key(name), body, body.size); err != nil {
		return nil, c.latch(err)
	}
	info := &ltx.FileInfo{
		Level: level, MinTXID: minTXID, MaxTXID: maxTXID,
		Size: body.size, CreatedAt: time.UnixMilli(h.Timestamp).UTC(),
	}
	c.learn(info)
	return info, nil
}

// allow refuses names that this session never writes.
func (c *client) allow(name ltxName) error {
	if err := c.fence(); err != nil {
		return err
	}
	if err := name.check(); err != nil {
		return err
	}
	switch newest := c.newest(0); {
	case name.level == 0 && name.min <= c.base:
		return fmt.Errorf("%w: TXID %d is not above the base %d", errBadName, name.min, c.base)
	case name.level == 0 && name.min > newest+1:
		return fmt.Errorf("%w: TXID %d does not go on from %d", errBadName, name.min, newest)
	}
	return nil
}

// latch fences the client when another writer's bytes were found.
func (c *client) latch(err error) error {
	if !errors.Is(err, errOtherBytes) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fenced = fmt.Errorf("%w: %w", ErrFenced, err)
	return c.fenced
}

// learn adds a confirmed file, once.
func (c *client) learn(info *ltx.FileInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	files := c.files[info.Level]
	at := len(files)
	for at > 0 && files[at-1].MinTXID >= info.MinTXID {
		if at--; files[at].MinTXID == info.MinTXID && files[at].MaxTXID == info.MaxTXID {
			return
		}
	}
	c.files[info.Level] = slices.Insert(files, at, info)
}

// forget drops what is known of level up to upTo, all but the newest file, and
// returns it. The objects stay: retiring a generation is parking's work.
func (c *client) forget(level int, upTo ltx.TXID) []*ltx.FileInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	files := c.files[level]
	n := 0
	for n < len(files)-1 && files[n].MaxTXID <= upTo {
		n++
	}
	c.files[level] = slices.Clone(files[n:])
	return files[:n]
}

func (c *client) key(name ltxName) string { return ltxPrefix(c.gen.Location, c.gen.ID) + name.String() }

// DeleteLTXFiles implements [litestream.ReplicaClient] by refusing.
func (c *client) DeleteLTXFiles(_ context.Context, files []*ltx.FileInfo) error {
	if len(files) == 0 {
		return nil
	}
	return fmt.Errorf("delete %d files: %w", len(files), errors.ErrUnsupported)
}

// DeleteAll implements [litestream.ReplicaClient] by refusing.
func (c *client) DeleteAll(context.Context) error {
	return fmt.Errorf("delete all files: %w", errors.ErrUnsupported)
}

// Type implements [litestream.ReplicaClient].
func (c *client) Type() string { return "objstore" }

// Init implements [litestream.ReplicaClient].
func (c *client) Init(context.Context) error { return nil }

// SetLogger implements [litestream.ReplicaClient]; the client returns its errors
// and logs nothing.
func (c *client) SetLogger(*slog.Logger) {}

func headerOf(body io.ReadSeeker) (ltx.Header, error) {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return ltx.Header{}, err
	}
	var b [ltx.HeaderSize]byte
	if _, err := io.ReadFull(body, b[:]); err != nil {
		return ltx.Header{}, err
	}
	h, _, err := ltx.PeekHeader(bytes.NewReader(b[:]))
	return h, err
}
