package hostdb

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/benbjohnson/litestream"
	"github.com/superfly/ltx"
)

// keptLevel is where a prepared generation has transactions. No compaction of
// its own reads or writes it, so the session that opens the generation begins as
// over a lone snapshot.
const keptLevel = litestream.SnapshotLevel - 1

// tailBytes is how much of the end of a set is uploaded as one object, in place
// of a copy for each of its objects, in bytes. Those are many and small.
const tailBytes = 4 << 20

// root is what a prepared generation has of a set, by the set alone.
type root struct {
	copied int       // how many of the set's objects are copied; the others make the tail
	names  []ltxName // of the copies, in order, of the tail if there is one, and of the anchor
}

// rootOf plans the LTX files of a prepared generation: copies of the set's
// objects, the full image as a snapshot, the tail that stands for all that are
// not copied, and the anchor, a level-0 file at N. Without the anchor a
// replicator would start again at TXID 1 below the others.
func rootOf(set RecoverySet) (r root, err error) {
	if set.Empty {
		return root{}, nil
	}
	r.copied = len(set.Objects)
	for left := int64(tailBytes); r.copied > 0 && set.Objects[r.copied-1].Size <= left; r.copied-- {
		left -= set.Objects[r.copied-1].Size
	}
	n := ltx.TXID(set.MaxTXID)
	for i, ref := range set.Objects[:min(r.copied+1, len(set.Objects))] {
		name, err := nameOf(ref.Key)
		if err != nil {
			return root{}, fmt.Errorf("%w: object %s: %w", ErrBroken, ref.Key, err)
		}
		if name.level = keptLevel; i == 0 {
			name.level = litestream.SnapshotLevel
		}
		if i == r.copied {
			name.max = n
		}
		if err := name.check(); err != nil {
			return root{}, fmt.Errorf("%w: object %s: %w", ErrBroken, ref.Key, err)
		}
		r.names = append(r.names, name)
	}
	r.names = append(r.names, ltxName{0, n, n})
	return r, nil
}

// tail is the number of the tail in names; ok is false if all is copied.
func (r root) tail() (i int, ok bool) { return r.copied, len(r.names) == r.copied+2 }

// keys are those of the names in generation p.
func (r root) keys(location, p string) (keys []string) {
	for _, name := range r.names {
		keys = append(keys, ltxPrefix(location, p)+name.String())
	}
	return keys
}

// rootHeader is the header of a file from min to h's end that stands for a
// database without a WAL: no salts match it, so a replicator that knows nothing
// else goes on from it with a full image. The offset is that of the first frame;
// 0 would fail every later sync.
func rootHeader(h ltx.Header, min ltx.TXID) ltx.Header {
	return ltx.Header{
		Version: ltx.Version, Flags: ltx.HeaderFlagNoChecksum, PageSize: h.PageSize, Commit: h.Commit,
		MinTXID: min, MaxTXID: h.MaxTXID, Timestamp: h.Timestamp, WALOffset: litestream.WALHeaderSize,
	}
}

// encodeLTX is an LTX file of the pages that are yielded, in order.
func encodeLTX(h ltx.Header, pages iter.Seq2[uint32, []byte]) ([]byte, error) {
	var b bytes.Buffer
	enc, err := ltx.NewEncoder(&b)
	if err != nil {
		return nil, err
	}
	if err := enc.EncodeHeader(h); err != nil {
		return nil, err
	}
	for pgno, data := range pages {
		if err := enc.EncodePage(ltx.PageHeader{Pgno: pgno}, data); err != nil {
			return nil, err
		}
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// encodeEmpty is an LTX file without pages.
func encodeEmpty(h ltx.Header) ([]byte, error) {
	return encodeLTX(h, func(func(uint32, []byte) bool) {})
}
