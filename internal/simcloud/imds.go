package simcloud

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	tokenHeader    = "X-Aws-Ec2-Metadata-Token"
	tokenTTLHeader = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	maxTokenTTL    = 6 * 60 * 60 // seconds
)

// serveMetadata opens the instance's metadata service. It serves version 2
// only: a session token by PUT, and everything else with that token.
func (i *instance) serveMetadata(s *signer, now func() time.Time) error {
	document := i.document()
	signature, err := s.sign(document)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	tokens := newTokens(now)
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", tokens.issue)
	serve := func(path, body string) {
		mux.HandleFunc("GET /latest/"+path, tokens.require(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte(body))
		}))
	}
	serve("dynamic/instance-identity/document", string(document))
	serve("dynamic/instance-identity/signature", signature)
	serve("meta-data/instance-id", i.id)
	serve("meta-data/placement/region", i.region)
	i.imds = "http://" + ln.Addr().String()
	i.metadata = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = i.metadata.Serve(ln) }()
	return nil
}

// tokens issues session tokens that carry their own end, so that none is kept.
type tokens struct {
	key [32]byte
	now func() time.Time
}

func newTokens(now func() time.Time) *tokens {
	t := &tokens{now: now}
	_, _ = rand.Read(t.key[:]) // never fails: crypto/rand
	return t
}

func (t *tokens) issue(w http.ResponseWriter, r *http.Request) {
	ttl, err := strconv.Atoi(r.Header.Get(tokenTTLHeader))
	switch {
	case r.Header.Get("X-Forwarded-For") != "":
		// A request through a proxy is not one of this instance's own.
		w.WriteHeader(http.StatusForbidden)
		return
	case err != nil || ttl < 1 || ttl > maxTokenTTL:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set(tokenTTLHeader, strconv.Itoa(ttl))
	_, _ = w.Write([]byte(t.token(t.now().Add(time.Duration(ttl) * time.Second))))
}

func (t *tokens) token(end time.Time) string {
	body := binary.BigEndian.AppendUint64(nil, uint64(end.Unix()))
	mac := hmac.New(sha256.New, t.key[:])
	mac.Write(body)
	return base64.URLEncoding.EncodeToString(mac.Sum(body))
}

func (t *tokens) valid(token string) bool {
	raw, err := base64.URLEncoding.DecodeString(token)
	if err != nil || len(raw) < 8 {
		return false
	}
	end := time.Unix(int64(binary.BigEndian.Uint64(raw)), 0)
	return hmac.Equal([]byte(token), []byte(t.token(end))) && t.now().Before(end)
}

func (t *tokens) require(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !t.valid(r.Header.Get(tokenHeader)) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		serve(w, r)
	}
}
