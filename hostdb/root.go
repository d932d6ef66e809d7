package hostdb

import (
	"bytes"

	"github.com/benbjohnson/litestream"
	"github.com/superfly/ltx"
)

// rootNames are the LTX files of a prepared generation at n. Without the second
// a replicator would start again at TXID 1 below the first.
func rootNames(n ltx.TXID) [2]ltxName {
	return [2]ltxName{{litestream.SnapshotLevel, 1, n}, {0, n, n}}
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

// encodeEmpty is an LTX file without pages.
func encodeEmpty(h ltx.Header) ([]byte, error) {
	var b bytes.Buffer
	enc, err := ltx.NewEncoder(&b)
	if err != nil {
		return nil, err
	}
	if err := enc.EncodeHeader(h); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
