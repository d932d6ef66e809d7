package hostdb

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// errNoBase: there is no base that the set goes on from. It is made afresh.
var errNoBase = errors.New("no base to go on from")

// unowned stands for a page that no object of the set is known to give.
const unowned = math.MaxUint32

// warmed is warm.json: what the base beside it is. It is there only while it is
// true, and is believed only while the files have their identity and digest.
type warmed struct {
	V              int         `json:"v"` // 1
	Generation     string      `json:"generation"`
	Objects        []ObjectRef `json:"objects,omitempty"` // that the base is the merge of, in order, each with its SHA-256
	TXID           uint64      `json:"txid"`              // W, the last transaction
	PageSize       uint32      `json:"page_size"`         // bytes
	Pages          uint32      `json:"pages"`
	Timestamp      int64       `json:"timestamp_ms"` // of the newest object's header
	DatabaseSHA256 string      `json:"database_sha256"`
	IndexSHA256    string      `json:"index_sha256"` // of the index file
	File           identity    `json:"file"`         // of the base
}

// base is a database file that is, page for page, what [Restore] makes of the
// objects in its record. It grows with a set without reading what it holds.
type base struct {
	warmed
	dir     string
	leaves  leaves
	owners  []uint32 // for each page, which object it is from
	fetched int64    // bytes read from the store
}

func (b *base) path() string { return filepath.Join(b.dir, "base.db") }

func (b *base) record() string { return filepath.Join(b.dir, "warm.json") }

func (b *base) index() string { return filepath.Join(b.dir, "base.index") }

func (b *base) spool() string { return filepath.Join(b.dir, "spool") }

// bring makes the base in dir that of set: from the one that is there if set
// goes on from it, else afresh. A base that the set does not go on from costs
// time and nothing else.
func bring(ctx context.Context, s objstore.Store, set RecoverySet, dir string) (*base, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	b, err := openBase(dir)
	if err == nil {
		err = b.advance(ctx, s, set)
	}
	if errors.Is(err, errNoBase) || errors.Is(err, ErrBroken) {
		b = &base{dir: dir}
		err = b.make(ctx, s, set)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// openBase reads what lies in dir and refuses all that is not exactly what was
// left there.
func openBase(dir string) (*base, error) {
	b := &base{dir: dir}
	w, err := readLocal[warmed](b.record())
	if err != nil || w.V != 1 || len(w.Objects) == 0 || !ltx.IsValidPageSize(w.PageSize) {
		return nil, errNoBase
	}
	b.warmed = w
	if at, err := identityOf(b.path()); err != nil || at != w.File || at.Size != b.size() {
		return nil, errNoBase
	}
	body, err := os.ReadFile(b.index())
	if err != nil || record.Digest(body) != w.IndexSHA256 || !b.readIndex(body) {
		return nil, errNoBase
	}
	return b, nil
}

func (b *base) size() int64 { return int64(b.Pages) * int64(b.PageSize) }

func (b *base) blocks() int { return int((b.size() + blockSize - 1) / blockSize) }

// readIndex takes the leaves and owners apart.
func (b *base) readIndex(body []byte) bool {
	n := b.blocks() * sha256.Size
	if len(body) != n+4*int(b.Pages) {
		return false
	}
	b.leaves, b.owners = body[:n:n], make([]uint32, b.Pages)
	for i := range b.owners {
		b.owners[i] = binary.LittleEndian.Uint32(body[n+4*i:])
	}
	return b.leaves.digest() == b.DatabaseSHA256
}

// make downloads the whole set into a new base and lets SQLite check it.
func (b *base) make(ctx context.Context, s objstore.Store, set RecoverySet) error {
	if err := removeAny(b.record(), b.index(), b.path()); err != nil {
		return err
	}
	f, err := fetch(ctx, s, set, start{}, b.spool())
	if err != nil {
		return err
	}
	defer f.close()
	if err := b.apply(ctx, f, set); err != nil {
		return err
	}
	if err := integrity(ctx, b.path()); err != nil {
		return err
	}
	return b.save()
}

// advance makes the base that of set by applying the objects of set from the
// first that it was not made of. Nothing is taken on trust: the result is the
// merge of exactly the objects of set, see apply.
func (b *base) advance(ctx context.Context, s objstore.Store, set RecoverySet) error {
	n := b.shared(set)
	switch {
	case n == len(set.Objects) && n == len(b.Objects):
		return nil
	case n == 0 || n == len(set.Objects):
		return errNoBase
	}
	name, err := nameOf(set.Objects[n-1].Key)
	if err != nil {
		return fmt.Errorf("%w: object %s: %w", ErrBroken, set.Objects[n-1].Key, err)
	}
	f, err := fetch(ctx, s, set, start{after: n, txid: name.max, pageSize: b.PageSize}, b.spool())
	if err != nil {
		return err
	}
	defer f.close()
	if err := removeAny(b.record()); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // what is left is short, and half done it is worth nothing
	if err := b.apply(ctx, f, set); err != nil {
		return err
	}
	if err := readable(ctx, b.path()); err != nil {
		return fmt.Errorf("%w: %w", errNoBase, err) // made afresh, and then checked whole
	}
	return b.save()
}

// shared is how many objects at the start of set are those at the start of the
// base.
func (b *base) shared(set RecoverySet) (n int) {
	if b.Generation != set.Generation {
		return 0
	}
	for n < min(len(b.Objects), len(set.Objects)) && b.Objects[n].is(set.Objects[n]) {
		n++
	}
	return n
}

// is reports whether o, whose body was read, is the object that ref names.
func (o ObjectRef) is(ref ObjectRef) bool {
	return o.Key == ref.Key && o.Size == ref.Size &&
		(ref.ETag == "" || ref.ETag == o.ETag) && (ref.SHA256 == "" || ref.SHA256 == o.SHA256)
}

// apply writes the pages of f, which are the objects of set that follow those
// the two share, over the base. What the base has beyond the shared objects does
// not count, whatever it was: each page that came from there, or that nothing
// gave yet, must be given by an object of f, or there is no base for this set.
func (b *base) apply(ctx context.Context, f *fetched, set RecoverySet) error {
	shared := len(set.Objects) - len(f.objects)
	last := f.last()
	dirty := b.resize(shared, last)
	file, err := os.OpenFile(b.path(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Truncate(b.size()); err != nil {
		return err
	}
	out := runs{file: file}
	err = f.merge(ctx, func(pgno uint32, from int, data []byte) error {
		b.owners[pgno-1] = uint32(shared + from)
		at := int64(pgno-1) * int64(b.PageSize)
		dirty[at/blockSize] = true
		return out.write(at, data)
	})
	if err := errors.Join(err, out.flush()); err != nil {
		return err
	}
	for i, owner := range b.owners {
		if owner == unowned && uint32(i+1) != last.LockPgno() {
			return fmt.Errorf("%w: nothing gives page %d of %d", b.missing(shared), i+1, b.Pages)
		}
	}
	if err := b.rehash(file, dirty); err != nil {
		return err
	}
	b.Objects = append(slices.Clone(b.Objects[:shared]), f.objects...)
	b.Generation, b.TXID, b.Timestamp = set.Generation, set.MaxTXID, last.Timestamp
	b.fetched = f.bytes
	return errors.Join(file.Sync(), file.Close())
}

// missing is what a page without an owner means.
func (b *base) missing(shared int) error {
	if shared > 0 {
		return errNoBase
	}
	return ErrBroken
}

// resize gives the base the size of h, disowns the pages that are not from the
// shared objects, and returns which blocks change by that.
func (b *base) resize(shared int, h ltx.Header) (dirty []bool) {
	was := b.Pages
	b.PageSize, b.Pages = h.PageSize, h.Commit
	for i, owner := range b.owners {
		if owner >= uint32(shared) {
			b.owners[i] = unowned
		}
	}
	b.owners = b.owners[:min(len(b.owners), int(b.Pages))]
	for len(b.owners) < int(b.Pages) {
		b.owners = append(b.owners, unowned)
	}
	dirty = make([]bool, b.blocks())
	for i := int64(min(was, b.Pages)) * int64(b.PageSize) / blockSize; was != b.Pages && i < int64(len(dirty)); i++ {
		dirty[i] = true
	}
	return dirty
}

// rehash makes the leaves those of the file, of which the dirty blocks changed.
func (b *base) rehash(file *os.File, dirty []bool) error {
	b.leaves = append(b.leaves, make(leaves, len(dirty)*sha256.Size)...)[:len(dirty)*sha256.Size]
	block := make([]byte, blockSize)
	for i := range dirty {
		if !dirty[i] {
			continue
		}
		at := int64(i) * blockSize
		part := block[:min(blockSize, b.size()-at)]
		if _, err := file.ReadAt(part, at); err != nil {
			return fmt.Errorf("read back %s: %w", b.path(), err)
		}
		b.leaves.set(i, part)
	}
	b.DatabaseSHA256 = b.leaves.digest()
	return nil
}

// save writes the index and the record, by which the base is found again. Where
// the system tells no identities it is not.
func (b *base) save() (err error) {
	b.File, err = identityOf(b.path())
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	body := slices.Clone([]byte(b.leaves))
	for _, owner := range b.owners {
		body = binary.LittleEndian.AppendUint32(body, owner)
	}
	b.V, b.IndexSHA256 = 1, record.Digest(body)
	if err := os.WriteFile(b.index(), body, 0o600); err != nil {
		return err
	}
	return writeRecord(b.record(), b.warmed)
}

// header is that of a file that ends where the base does.
func (b *base) header(min ltx.TXID) ltx.Header {
	return rootHeader(ltx.Header{PageSize: b.PageSize, Commit: b.Pages, MaxTXID: ltx.TXID(b.TXID), Timestamp: b.Timestamp}, min)
}

// tail is one LTX file that stands for all objects of the base from number from
// on, the first of which begins at min: the pages that are from them.
func (b *base) tail(from int, min ltx.TXID) ([]byte, error) {
	file, err := os.Open(b.path())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var readErr error
	body, err := encodeLTX(b.header(min), func(yield func(uint32, []byte) bool) {
		data := make([]byte, b.PageSize)
		for i, owner := range b.owners {
			if owner == unowned || owner < uint32(from) {
				continue
			}
			if _, readErr = file.ReadAt(data, int64(i)*int64(b.PageSize)); readErr != nil || !yield(uint32(i+1), data) {
				return
			}
		}
	})
	return body, errors.Join(err, readErr)
}

// handOver moves the base to path, where it is no base any more.
func (b *base) handOver(path string) error {
	if err := removeAny(b.record(), b.index()); err != nil {
		return err
	}
	return move(b.path(), path, b.DatabaseSHA256)
}

// runs joins writes that follow each other in a file.
type runs struct {
	file *os.File
	at   int64
	data []byte
}

func (r *runs) write(at int64, data []byte) error {
	if at != r.at+int64(len(r.data)) || len(r.data) >= 1<<20 {
		if err := r.flush(); err != nil {
			return err
		}
		r.at = at
	}
	r.data = append(r.data, data...)
	return nil
}

func (r *runs) flush() error {
	_, err := r.file.WriteAt(r.data, r.at)
	r.at, r.data = r.at+int64(len(r.data)), r.data[:0]
	return err
}
