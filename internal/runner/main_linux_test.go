package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/carlosframework/regionha/internal/machine"
)

// The test binary is also the app, and an agent that can be killed.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("TEST_APP"); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "agent":
		runAgent()
	default:
		runApp(mode)
	}
}

// runApp is the app. mode is a word for how it behaves.
func runApp(mode string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	switch mode {
	case "fail":
		fmt.Println("no such table")
		os.Exit(3)
	case "silent":
		<-term
		return
	case "parent": // leaves a process in its group and exits
		fmt.Println(fork(false))
		return
	}
	l, err := listen()
	if err != nil {
		if mode == "stubborn" {
			<-term
		}
		fmt.Println(err)
		os.Exit(1)
	}
	go http.Serve(l, appHandler())
	<-term
	if mode == "deaf" {
		select {}
	}
	os.WriteFile("terminated", nil, 0o600)
}

func listen() (net.Listener, error) {
	if path := os.Getenv("LISTEN_SOCKET"); path != "" {
		return net.Listen("unix", path)
	}
	return net.Listen("tcp4", "127.0.0.1:"+os.Getenv("PORT"))
}

func appHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /env", func(w http.ResponseWriter, r *http.Request) { json.NewEncoder(w).Encode(os.Environ()) })
	mux.HandleFunc("GET /cwd", func(w http.ResponseWriter, r *http.Request) {
		dir, _ := os.Getwd()
		fmt.Fprint(w, dir)
	})
	mux.HandleFunc("GET /exit", func(http.ResponseWriter, *http.Request) { os.Exit(4) })
	mux.HandleFunc("GET /fork", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, fork(r.URL.Query().Has("setsid")))
	})
	return mux
}

// fork starts a process that ignores TERM, in a session of its own if asked.
func fork(setsid bool) int {
	cmd := exec.Command("/bin/sh", "-c", "trap '' TERM; while :; do sleep 1000; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
	if err := cmd.Start(); err != nil {
		return 0
	}
	return cmd.Process.Pid
}

// runAgent starts an app, says that it is ready, and lives until it is killed.
func runAgent() {
	var cfg Config
	err := json.Unmarshal([]byte(os.Getenv("TEST_CONFIG")), &cfg)
	if err != nil {
		panic(err)
	}
	if parent := os.Getenv("TEST_CGROUPS"); parent != "" {
		m, err := machine.OpenCgroups("", filepath.Base(parent))
		if err != nil {
			panic(err)
		}
		cfg.Machine = m
	}
	app, err := Start(cfg)
	if err != nil {
		panic(err)
	}
	if err := app.WaitReady(context.Background()); err != nil {
		panic(err)
	}
	s, _ := app.State()
	fmt.Println(strconv.Itoa(s.PID) + " " + s.Addr.String())
	select {}
}
