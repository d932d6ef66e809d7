package hostfiles

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// blockSize is how much of a file is held in memory at a time.
const blockSize = 1 << 20

// errChanged: a file does not hold the bytes any more that it held when it was
// first read.
var errChanged = errors.New("the file changed while it was read")

// content is a file's bytes as one first pass read them. The digest must be
// known before the upload names its key, so the upload reads the file again; the
// digest of every block from the first pass sees to it that this yields the same
// bytes or [errChanged], and an object never holds other bytes than its name says.
type content struct {
	file    *os.File
	size    int64
	sum     string // sha256 of the whole
	blocks  [][sha256.Size]byte
	block   []byte // the block at index, verified
	index   int
	offset  int64
	changed bool // a read met other bytes
}

// readContent makes the first pass. A file of one block is not read again.
func readContent(file *os.File, sizeHint int64) (*content, error) {
	c := &content{file: file, index: -1}
	whole := sha256.New()
	buffer := make([]byte, max(1, min(sizeHint+1, blockSize)))
	for {
		n, err := readFull(file, buffer, c.size)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			whole.Write(buffer[:n])
			c.blocks = append(c.blocks, sha256.Sum256(buffer[:n]))
			c.size += int64(n)
			c.block, c.index = buffer[:n], len(c.blocks)-1
		}
		if n < len(buffer) {
			break
		}
		if len(buffer) < blockSize { // it grew past the hint: start again in whole blocks
			return readContent(file, blockSize)
		}
	}
	c.sum = hex.EncodeToString(whole.Sum(nil))
	return c, nil
}

// readFull reads from offset until p is full or the file ends.
func readFull(file *os.File, p []byte, offset int64) (int, error) {
	n, err := io.ReadFull(io.NewSectionReader(file, offset, int64(len(p))), p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}

// Read yields the bytes of the first pass.
func (c *content) Read(p []byte) (int, error) {
	if c.offset >= c.size {
		return 0, io.EOF
	}
	index := int(c.offset / blockSize)
	if err := c.load(index); err != nil {
		return 0, err
	}
	n := copy(p, c.block[c.offset-int64(index)*blockSize:])
	c.offset += int64(n)
	return n, nil
}

// load makes the block at index the current one.
func (c *content) load(index int) error {
	if c.index == index {
		return nil
	}
	start := int64(index) * blockSize
	block := c.block[:min(blockSize, c.size-start)] // a file of several blocks has room for a whole one
	n, err := readFull(c.file, block, start)
	if err != nil {
		return err
	}
	c.block, c.index = block, -1
	if n < len(block) || sha256.Sum256(block) != c.blocks[index] {
		c.changed = true
		return errChanged
	}
	c.index = index
	return nil
}

// Seek implements io.Seeker.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.offset
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	c.offset = offset
	return offset, nil
}
