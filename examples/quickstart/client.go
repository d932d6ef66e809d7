package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	noteEvery = 50 * time.Millisecond
	fileEvery = 500 * time.Millisecond
	fileBytes = 32 << 10

	// answerWithin bounds one request while a box dies. It is short, so that a
	// request that went to a box that hangs makes the outage look little longer
	// than it was.
	answerWithin = time.Second

	// heldWithin bounds one request while the host is moved on purpose: an
	// ingress holds it for up to 10 s, and then it is answered.
	heldWithin = 15 * time.Second

	// filesEvery is how often the host's files are published.
	filesEvery = time.Second
)

// client speaks to the app of one host through one box's ingress.
type client struct {
	host string
	base string // http://address of the ingress
	http http.Client
}

func newClient(address, host string) *client { return &client{host: host, base: "http://" + address} }

// call sends one request to the host and decodes the answer into out, where
// that is not nil. An answer that is not want is an error.
func (c *client) call(ctx context.Context, method, path string, body []byte, want int, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Host = c.host
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != want {
		return fmt.Errorf("%s %s: %s, expected %d: %.200s", method, path, resp.Status, want, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// note is a row as the app lists it. Run is the random id of the process that
// wrote it.
type note struct {
	RowID int64  `json:"rowid"`
	ID    string `json:"id"`
	Run   string `json:"run"`
	Body  string `json:"body"`
	Error string `json:"error"` // why the body could not be unsealed
}

// upload is a file as the app lists it.
type upload struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

func (c *client) notes(ctx context.Context) (list []note, err error) {
	return list, c.call(ctx, http.MethodGet, "/notes", nil, http.StatusOK, &list)
}

func (c *client) files(ctx context.Context) (list []upload, err error) {
	return list, c.call(ctx, http.MethodGet, "/files", nil, http.StatusOK, &list)
}

// add writes a note that is not there yet.
func (c *client) add(ctx context.Context, id, body string) error {
	raw, err := json.Marshal(map[string]string{"id": id, "body": body})
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, "/notes", raw, http.StatusCreated, nil)
}

// ack is something that the app acknowledged.
type ack struct {
	id, sum string // sum: hex SHA-256 of its content
	at      time.Time
}

// writer writes to the host, one note after another at a steady rate, and files
// beside them. It keeps what was acknowledged, in that order.
type writer struct {
	*client
	prefix   string        // of every id
	patience time.Duration // with one request
	slower   int           // times the usual pace; 1 if zero

	mu     sync.Mutex
	sent   map[string]string // the sum of every note that was tried, by id
	noted  []ack
	filed  []ack
	failed []error // of each request that was not acknowledged
}

func newWriter(c *client, prefix string, patience time.Duration) *writer {
	return &writer{client: c, prefix: prefix, patience: patience, sent: map[string]string{}}
}

// run writes until ctx ends. A failed write is not repeated: whether it was
// done is unknown, and the next has another id.
func (w *writer) run(ctx context.Context) {
	var group sync.WaitGroup
	times := time.Duration(max(w.slower, 1))
	group.Go(func() { every(ctx, times*noteEvery, func() { w.failing(ctx, w.note(ctx, text(32))) }) })
	group.Go(func() { every(ctx, times*fileEvery, func() { w.failing(ctx, w.file(ctx, random(fileBytes))) }) })
	group.Wait()
}

// failing keeps the error of a request, unless the end of ctx cut it off.
func (w *writer) failing(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, err)
}

// every calls do at that pace, later where do takes longer, until ctx ends.
func every(ctx context.Context, pace time.Duration, do func()) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// note writes one note.
func (w *writer) note(ctx context.Context, body string) error {
	w.mu.Lock()
	id := fmt.Sprintf("%s-%06d", w.prefix, len(w.sent))
	w.sent[id] = digest([]byte(body))
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	if err := w.add(ctx, id, body); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, ack{id, w.sent[id], time.Now()})
	return nil
}

// file uploads one file under its own digest as the name.
func (w *writer) file(ctx context.Context, content []byte) error {
	name := digest(content)
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	if err := w.call(ctx, http.MethodPost, "/files/"+name, content, http.StatusCreated, nil); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.filed = append(w.filed, ack{name, name, time.Now()})
	return nil
}

// fillBytes is how much the app is asked to write in one request.
const fillBytes = 8 << 20

// fill grows the app's database by total bytes.
func (c *client) fill(ctx context.Context, total int64) error {
	for n := int64(0); n < total; n += fillBytes {
		path := fmt.Sprintf("/fill?bytes=%d", min(fillBytes, total-n))
		if err := c.call(ctx, http.MethodPost, path, nil, http.StatusOK, nil); err != nil {
			return fmt.Errorf("fill the database: %w", err)
		}
	}
	return nil
}

// tried is how many notes were sent.
func (w *writer) tried() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sent)
}

// acked copies what was acknowledged so far.
func (w *writer) acked() (notes, files []ack) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]ack(nil), w.noted...), append([]ack(nil), w.filed...)
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand
	return b
}

// text is n random bytes in hex.
func text(n int) string { return hex.EncodeToString(random(n)) }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
