package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

const (
	maxNote = 1 << 20  // bytes of a note's JSON
	maxFile = 10 << 30 // bytes of an upload
	maxFill = 16 << 30 // bytes of one fill
)

// A server answers the app's requests.
type server struct {
	notes *notes
	files files
}

func newServer(n *notes, f files) http.Handler {
	s := server{n, f}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /notes", answer(s.addNote))
	mux.HandleFunc("GET /notes", answer(s.listNotes))
	mux.HandleFunc("POST /files/{name}", answer(s.putFile))
	mux.HandleFunc("GET /files", answer(s.listFiles))
	mux.HandleFunc("POST /fill", answer(s.fill))
	mux.HandleFunc("GET /healthz", answer(s.health))
	return mux
}

// A failure is an error with the status to answer.
type failure struct {
	status int
	error
}

func bad(format string, args ...any) error {
	return failure{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// answer makes a handler of one that returns its status, and what to write as
// JSON, or its error.
func answer(h func(*http.Request) (status int, body any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, body, err := h(r)
		if err != nil {
			status = http.StatusInternalServerError
			if f := (failure{}); errors.As(err, &f) {
				status = f.status
			}
			body = map[string]string{"error": err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(body) // an error is the client's absence
	}
}

func (s server) addNote(r *http.Request) (int, any, error) {
	var in struct{ ID, Body string }
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxNote)).Decode(&in); err != nil {
		return 0, nil, bad("a note is JSON with id and body: %w", err)
	}
	if in.ID == "" {
		return 0, nil, bad("a note's id is empty")
	}
	added, err := s.notes.add(r.Context(), in.ID, in.Body)
	if err != nil {
		return 0, nil, err
	}
	status := http.StatusOK
	if added {
		status = http.StatusCreated
	}
	return status, map[string]string{"id": in.ID}, nil
}

func (s server) listNotes(r *http.Request) (int, any, error) {
	list, err := s.notes.list(r.Context())
	return http.StatusOK, list, err
}

func (s server) putFile(r *http.Request) (int, any, error) {
	name := r.PathValue("name")
	err := s.files.put(name, http.MaxBytesReader(nil, r.Body, maxFile))
	if errors.Is(err, errBadName) {
		err = failure{http.StatusBadRequest, err}
	}
	return http.StatusCreated, map[string]string{"name": name}, err
}

func (s server) listFiles(*http.Request) (int, any, error) {
	list, err := s.files.list()
	return http.StatusOK, list, err
}

func (s server) fill(r *http.Request) (int, any, error) {
	bytes, err := strconv.ParseInt(r.FormValue("bytes"), 10, 64)
	if err != nil || bytes < 0 || bytes > maxFill {
		return 0, nil, bad("bytes=%q: want a number from 0 to %d", r.FormValue("bytes"), int64(maxFill))
	}
	return http.StatusOK, map[string]int64{"bytes": bytes}, s.notes.fill(r.Context(), bytes)
}

func (s server) health(r *http.Request) (int, any, error) {
	if err := s.notes.check(r.Context()); err != nil {
		return 0, nil, failure{http.StatusServiceUnavailable, err}
	}
	return http.StatusOK, map[string]string{"status": "ok"}, nil
}
