package event

// MaxBody bounds a message's body in bytes, as SQS itself does. A longer one is
// delivered without its body, so that it can be dropped but never be read.
const MaxBody = 1 << 20

// Message is one delivery of a queue. The same message may be delivered again,
// with the same ID and another Handle.
type Message struct {
	ID       string // of the message
	Handle   string // of this delivery: deleting the message takes it
	Body     []byte // at most MaxBody bytes
	Receives int    // how often it was delivered, this time included; 0: unknown
}
