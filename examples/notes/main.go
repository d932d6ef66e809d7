// Command notes is a small web app with a SQLite database: notes that are
// sealed at rest, and uploaded files. It is what the quickstart runs, and knows
// nothing of what runs it.
//
// It reads all its settings from the environment: PORT (on 127.0.0.1) or
// LISTEN_SOCKET, DATABASE_PATH, FILES_DIR and CARLOS_INSTANCE_KEY (32 bytes,
// base64url). It serves until TERM.
//
//	POST /notes         {"id": "...", "body": "..."}: 201 when committed, 200 if the id was there
//	GET  /notes         every note, in the order of their commits
//	POST /files/<name>  201 when the upload is whole and in place
//	GET  /files         every file's name, size and SHA-256
//	POST /fill?bytes=N  grows the database by N bytes
//	GET  /healthz       200 while the database answers
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	verbose := flag.Bool("v", false, "log every request")
	flag.Parse()
	if err := run(ctx, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "notes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, verbose bool) (err error) {
	box, err := newSeal(os.Getenv("CARLOS_INSTANCE_KEY"))
	if err != nil {
		return fmt.Errorf("CARLOS_INSTANCE_KEY: %w", err)
	}
	files, err := openFiles(os.Getenv("FILES_DIR"))
	if err != nil {
		return fmt.Errorf("FILES_DIR: %w", err)
	}
	notes, err := openNotes(os.Getenv("DATABASE_PATH"), box)
	if err != nil {
		return fmt.Errorf("DATABASE_PATH: %w", err)
	}
	defer func() { err = errors.Join(err, notes.Close()) }()
	l, err := listen()
	if err != nil {
		return err
	}
	h := newServer(notes, files)
	if verbose {
		h = logged(h)
	}
	return serve(ctx, l, h)
}

func logged(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		h.ServeHTTP(w, r)
		log.Printf("%s %s in %s", r.Method, r.URL.Path, time.Since(began).Round(time.Microsecond))
	})
}

func listen() (net.Listener, error) {
	port, socket := os.Getenv("PORT"), os.Getenv("LISTEN_SOCKET")
	switch {
	case socket != "":
		return net.Listen("unix", socket)
	case port != "":
		return net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	}
	return nil, errors.New("neither PORT nor LISTEN_SOCKET is set")
}

// serve serves until ctx ends, and then lets the running requests finish.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return srv.Shutdown(ctx)
}
