package hostdb

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// blockSize is what a database is digested by, in bytes. It holds whole pages of
// every size that SQLite has.
const blockSize = 64 << 10

// leaves are the SHA-256s of a database's blocks, in order. A change of some
// pages costs the digests of their blocks and no reading of the others.
type leaves []byte

// digest is the digest of the database: the SHA-256 of its leaves, hex.
func (l leaves) digest() string {
	sum := sha256.Sum256(l)
	return hex.EncodeToString(sum[:])
}

// set makes data the content of block i.
func (l leaves) set(i int, data []byte) {
	sum := sha256.Sum256(data)
	copy(l[i*sha256.Size:], sum[:])
}

// digester makes the leaves of a database that is written to it in order.
type digester struct {
	leaves leaves
	block  []byte
}

func (d *digester) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), blockSize-len(d.block))
		d.block = append(d.block, rest[:n]...)
		if rest = rest[n:]; len(d.block) == blockSize {
			d.endBlock()
		}
	}
	return len(p), nil
}

func (d *digester) endBlock() {
	sum := sha256.Sum256(d.block)
	d.leaves = append(d.leaves, sum[:]...)
	d.block = d.block[:0]
}

// finish returns the leaves of all that was written.
func (d *digester) finish() leaves {
	if len(d.block) > 0 {
		d.endBlock()
	}
	return d.leaves
}

// digestOf reads a database to its end and returns its digest.
func digestOf(r io.Reader) (string, error) {
	var d digester
	if _, err := io.CopyBuffer(&d, struct{ io.Reader }{r}, make([]byte, blockSize)); err != nil {
		return "", err
	}
	return d.finish().digest(), nil
}
