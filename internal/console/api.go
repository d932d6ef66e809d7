package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/hostrecord"
)

// maxBody is the longest request body in bytes.
const maxBody = 256 << 10

// API serves the console's functions as JSON under /api/v1.
//
//	GET  /api/v1/hosts               the hosts, each with what is going on
//	POST /api/v1/hosts               a NewHost: creates it, answers 202 and a Creation
//	GET  /api/v1/hosts/{host}        one host, with its claim and its record
//	GET  /api/v1/regions             the regions
//	GET  /api/v1/boxes               the boxes, and the machines that wait to be enrolled
//	GET  /api/v1/boxes/{box}         one of them
//	POST /api/v1/boxes/{box}/enroll  an Enrollment
//	GET  /healthz
//
// An error is {"error":{"what","why","next"}}. Members that are zero are absent.
type API struct {
	Console *Console
	Token   string       // every request under /api needs it; "": only loopback names are answered
	Log     *slog.Logger // slog.Default if nil
}

// Handler routes the requests.
func (a *API) Handler() http.Handler {
	api := http.NewServeMux()
	api.HandleFunc("GET /api/v1/hosts", func(w http.ResponseWriter, r *http.Request) {
		a.answer(w, http.StatusOK)(a.Console.Hosts(r.Context()))
	})
	api.HandleFunc("GET /api/v1/hosts/{host}", func(w http.ResponseWriter, r *http.Request) {
		a.answer(w, http.StatusOK)(a.Console.Host(r.Context(), r.PathValue("host")))
	})
	api.HandleFunc("POST /api/v1/hosts", func(w http.ResponseWriter, r *http.Request) {
		if n, ok := body[NewHost](a, w, r); ok {
			a.answer(w, http.StatusAccepted)(a.Console.Create(r.Context(), n))
		}
	})
	api.HandleFunc("GET /api/v1/boxes", func(w http.ResponseWriter, r *http.Request) {
		a.answer(w, http.StatusOK)(a.Console.Boxes(r.Context()))
	})
	api.HandleFunc("GET /api/v1/boxes/{box}", func(w http.ResponseWriter, r *http.Request) {
		a.answer(w, http.StatusOK)(a.Console.Box(r.Context(), r.PathValue("box")))
	})
	api.HandleFunc("GET /api/v1/regions", func(w http.ResponseWriter, r *http.Request) {
		a.answer(w, http.StatusOK)(a.Console.Regions(r.Context()))
	})
	api.HandleFunc("POST /api/v1/boxes/{box}/enroll", a.enroll)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("/api/v1/", a.guard(api))
	return mux
}

func (a *API) enroll(w http.ResponseWriter, r *http.Request) {
	e, ok := body[Enrollment](a, w, r)
	if !ok {
		return
	}
	if e.Ref = r.PathValue("box"); e.Pool == "" {
		e.Pool = "default"
	}
	a.answer(w, http.StatusOK)(a.Console.Enroll(r.Context(), e))
}

// guard lets a request through that carries the token. Without a token there
// is only this machine; a name that is not loopback's is then a browser that
// was led here by somebody else's page.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case a.Token == "" && !loopback(r.Host):
			a.fail(w, http.StatusForbidden, &Refusal{What: "the request was refused", Err: fmt.Errorf("%q is not this machine", r.Host), Next: "ask for 127.0.0.1, or set --token-file"})
		case a.Token != "" && !sameToken(r.Header.Get("Authorization"), "Bearer "+a.Token):
			w.Header().Set("WWW-Authenticate", "Bearer")
			a.fail(w, http.StatusUnauthorized, &Refusal{What: "the request was refused", Err: errors.New("it does not carry the token"), Next: "send Authorization: Bearer TOKEN"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// sameToken compares digests, so that neither content nor length shows in the
// time it takes.
func sameToken(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// loopback reports whether an address, with or without port, is this machine's
// own.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = strings.Trim(addr, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// body reads the request's JSON, strictly.
func body[T any](a *API, w http.ResponseWriter, r *http.Request) (v T, ok bool) {
	refuse := func(code int, err error) (T, bool) {
		a.fail(w, code, &Refusal{What: "nothing was done", Err: err, Next: "send one JSON object, as the API describes it"})
		return v, false
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, fmt.Errorf("Content-Type: got %q, want application/json", kind))
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, err)
	}
	if err := json.Unmarshal(raw, &v, json.RejectUnknownMembers(true)); err != nil {
		return refuse(http.StatusBadRequest, err)
	}
	return v, true
}

// answer writes what a function of the console returned.
func (a *API) answer(w http.ResponseWriter, code int) func(any, error) {
	return func(v any, err error) {
		if err != nil {
			a.fail(w, status(err), err)
			return
		}
		a.write(w, code, v)
	}
}

// status is the code of an error. One that is no refusal is a failure of the
// store or of the deployment.
func status(err error) int {
	var refusal *Refusal
	switch {
	case !errors.As(err, &refusal):
		return http.StatusBadGateway
	case errors.Is(err, ErrNone):
		return http.StatusNotFound
	case errors.Is(err, hostrecord.ErrInvalid), errors.Is(err, hostrecord.ErrBadHost), errors.Is(err, boxid.ErrBadRef):
		return http.StatusBadRequest
	}
	return http.StatusConflict
}

type problem struct {
	Error struct {
		What string `json:"what"`
		Why  string `json:"why"`
		Next string `json:"next"`
	} `json:"error"`
}

func (a *API) fail(w http.ResponseWriter, code int, err error) {
	var p problem
	var refusal *Refusal
	if errors.As(err, &refusal) {
		p.Error.What, p.Error.Why, p.Error.Next = refusal.What, refusal.Err.Error(), refusal.Next
	} else {
		p.Error.What, p.Error.Why, p.Error.Next = "it failed", err.Error(), "see that the store can be reached, and look before you try again"
	}
	a.write(w, code, p)
}

func (a *API) write(w http.ResponseWriter, code int, v any) {
	body, err := encode(v)
	if err != nil {
		a.log().Error("an answer could not be encoded", "err", err)
		http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		a.log().Debug("the answer was not sent whole", "err", err)
	}
}

func (a *API) log() *slog.Logger {
	if a.Log == nil {
		return slog.Default()
	}
	return a.Log
}
