package roothelper

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/carlosframework/regionha/internal/record"
)

// A conn carries whole messages, each a packet of its own.
type conn struct{ *net.UnixConn }

func newConn(c *net.UnixConn) (conn, error) {
	// The kernel's own bound of a packet is this buffer, doubled.
	return conn{c}, c.SetWriteBuffer(maxMessage)
}

// send sends one message, with at most one open file, to a peer that takes it
// soon.
func (c conn) send(v any, file *os.File) error {
	b, err := record.Encode(v)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("message has %d bytes, at most %d", len(b), maxMessage)
	}
	var oob []byte
	if file != nil {
		if oob, err = rights(file); err != nil {
			return err
		}
	}
	if err := c.SetWriteDeadline(time.Now().Add(sayTime)); err != nil {
		return err
	}
	_, _, err = c.WriteMsgUnix(b, oob, nil)
	return err
}

// errCut: a message did not fit what it may have.
var errCut = errors.New("message is too long")

// receive reads one message of less than len(buf) bytes, and the file that came
// with it, nil if none did. The caller closes it.
func (c conn) receive(buf []byte) ([]byte, *os.File, error) {
	oob := make([]byte, oobSpace)
	n, oobn, flags, _, err := c.ReadMsgUnix(buf, oob)
	if err != nil {
		return nil, nil, err
	}
	file, err := fileOf(oob[:oobn])
	if err == nil && (cut(flags) || n == len(buf)) {
		err = errCut
	}
	if err != nil {
		if file != nil {
			_ = file.Close() // nothing was written
		}
		return nil, nil, err
	}
	return buf[:n], file, nil
}
