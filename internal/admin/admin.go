package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config says what is served and where.
type Config struct {
	Addr     string               // to listen at; port 0 takes a free one
	DataDir  string               // admin.addr is written here, "" writes none
	Ready    func() error         // nil error: ready; must not block. Always ready if nil
	Registry *prometheus.Registry // a new one if nil
	Log      *slog.Logger         // slog.Default if nil
}

// Server is a bound listener. Its user calls Serve once.
type Server struct {
	config   Config
	listener net.Listener
	server   *http.Server
}

// Listen binds the address, logs it, and writes it to admin.addr in the data
// directory, so that scripts find a port that was chosen freely.
func Listen(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	c.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("admin listener: %w", err)
	}
	if c.DataDir != "" {
		if err := writeAddr(filepath.Join(c.DataDir, "admin.addr"), l.Addr().String()); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	c.Log.Info("admin listener bound", "addr", l.Addr().String())
	s := &Server{config: c, listener: l}
	s.server = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	return s, nil
}

// Addr is the bound address.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Serve answers until ctx ends, and returns nil then.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.server.Close() })
	defer stop()
	err := s.server.Serve(s.listener)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("admin listener: %w", err)
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.config.Ready != nil {
			if err := s.config.Ready(); err != nil {
				http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.config.Registry, promhttp.HandlerOpts{}))
	return mux
}

// writeAddr replaces the file whole, so that a reader sees an address or none.
func writeAddr(path, addr string) error {
	if err := os.WriteFile(path+".tmp", []byte(addr+"\n"), 0o644); err != nil {
		return fmt.Errorf("write the admin address: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("write the admin address: %w", err)
	}
	return nil
}
