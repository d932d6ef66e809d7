package boxauth

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Window is how far the signer's clock may be from the verifier's.
const Window = 30 * time.Second

// scheme opens the Authorization header; what follows is
// <unix nanoseconds>.<nonce>.<hex HMAC>.
const scheme = "Regionha-Hmac-Sha256 "

const maxNonces = 1 << 16

// ErrUnauthorized: the request is not shown to come from a box of this
// deployment. The message says which check failed, for the log; the sender is
// told nothing more.
var ErrUnauthorized = errors.New("unauthorized")

// ErrBusy: more signed requests came within the window than nonces are
// remembered, so that a replay could not be told. The sender may try later.
var ErrBusy = errors.New("too many signed requests")

// Sign sets req's Authorization header for body, which is what the caller
// sends, at now. Sign again for another attempt: a signature is good once.
func (s Secret) Sign(req *http.Request, body []byte, now time.Time) {
	at := strconv.FormatInt(now.UnixNano(), 10)
	nonce := rand.Text()
	req.Header.Set("Authorization", scheme+at+"."+nonce+"."+hex.EncodeToString(s.mac(req, body, at, nonce)))
}

// mac is the HMAC of everything that a signature covers, one item a line: no
// item can hold a newline, so no two requests give the same text.
func (s Secret) mac(req *http.Request, body []byte, at, nonce string) []byte {
	digest := sha256.Sum256(body)
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	h := hmac.New(sha256.New, s.key[:])
	for _, item := range []string{req.Method, host, req.URL.RequestURI(), hex.EncodeToString(digest[:]), at, nonce} {
		fmt.Fprintf(h, "%q\n", item)
	}
	return h.Sum(nil)
}

// Verifier checks signatures and remembers their nonces. It is safe for
// concurrent use.
type Verifier struct {
	Secret Secret
	Now    func() time.Time // time.Now if nil
	Log    *slog.Logger     // slog.Default if nil

	mu    sync.Mutex
	seen  map[string]time.Time // nonce to the time from which its request is too old anyhow
	swept time.Time            // when the memory was last swept
}

// Verify refuses, with [ErrUnauthorized], a request that was not signed as the
// package says, and with [ErrBusy] one that it cannot tell from a replay. body
// is all that was received.
func (v *Verifier) Verify(req *http.Request, body []byte) error {
	if v.Secret.zero() {
		return fmt.Errorf("%w: this verifier has no secret", ErrUnauthorized)
	}
	text, ok := strings.CutPrefix(req.Header.Get("Authorization"), scheme)
	part := strings.Split(text, ".")
	if !ok || len(part) != 3 {
		return fmt.Errorf("%w: no signature", ErrUnauthorized)
	}
	got, err := hex.DecodeString(part[2])
	if err != nil || !hmac.Equal(got, v.Secret.mac(req, body, part[0], part[1])) {
		return fmt.Errorf("%w: the signature is not that of this request under our secret", ErrUnauthorized)
	}
	nanos, err := strconv.ParseInt(part[0], 10, 64)
	if err != nil {
		return fmt.Errorf("%w: no time", ErrUnauthorized)
	}
	return v.once(part[1], time.Unix(0, nanos))
}

// once refuses a time outside the window, and a nonce that it has seen. Only
// requests with a good signature come here, so that nobody else can fill it.
func (v *Verifier) once(nonce string, at time.Time) error {
	now := time.Now()
	if v.Now != nil {
		now = v.Now()
	}
	if off := now.Sub(at); off.Abs() > Window {
		return fmt.Errorf("%w: signed %s from our time, want at most %s: is a clock wrong?", ErrUnauthorized, off.Abs().Round(time.Second), Window)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget(now)
	if _, again := v.seen[nonce]; again {
		return fmt.Errorf("%w: a replay", ErrUnauthorized)
	}
	if len(v.seen) >= maxNonces {
		return ErrBusy
	}
	v.seen[nonce] = at.Add(Window)
	return nil
}

// forget drops the nonces of requests that are too old by now. It sweeps the
// whole memory, so at most once a second.
func (v *Verifier) forget(now time.Time) {
	if v.seen == nil {
		v.seen = map[string]time.Time{}
	}
	if now.Sub(v.swept).Abs() < time.Second {
		return
	}
	v.swept = now
	for nonce, until := range v.seen {
		if now.After(until) {
			delete(v.seen, nonce)
		}
	}
}

// Handler lets only verified requests through to next, each with a body of at
// most maxBody bytes, which it reads whole.
func (v *Verifier) Handler(maxBody int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
		if err != nil {
			http.Error(w, "request body too large or cut short", http.StatusRequestEntityTooLarge)
			return
		}
		if err := v.Verify(req, body); err != nil {
			v.refuse(w, req, err)
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, req)
	})
}

func (v *Verifier) refuse(w http.ResponseWriter, req *http.Request, err error) {
	log := v.Log
	if log == nil {
		log = slog.Default()
	}
	log.Warn("internal request refused", "from", req.RemoteAddr, "path", req.URL.Path, "err", err)
	if errors.Is(err, ErrBusy) {
		http.Error(w, "try later", http.StatusServiceUnavailable)
		return
	}
	http.Error(w, "unauthorized", http.StatusUnauthorized)
}
