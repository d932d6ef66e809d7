package agent

import (
	"context"
	"os"
	"path/filepath"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/alert"
)

// explain alerts the hosts whose database lies here though no claim names this
// box for them. What lies there is not served and never deleted: a person has to
// say what it is. It costs a GET for each that no supervisor looks after.
func (a *Agent) explain(ctx context.Context) {
	dir := filepath.Join(a.set.DataDir, "hosts")
	entries, err := os.ReadDir(dir)
	if err != nil {
		a.log.Warn("look at what lies here", "err", err)
		return
	}
	unexplained := map[string]bool{}
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(dir, e.Name(), "db", "app.db")); err == nil && !a.explained(ctx, e.Name()) {
			unexplained[e.Name()] = true
			a.alerts.Raise(alert.Unexplained, e.Name(), "a host lies here for which no claim names this box: it is not served, and kept", "dir", filepath.Join(dir, e.Name()))
		}
	}
	for host := range a.unexplained {
		if !unexplained[host] {
			a.alerts.Clear(alert.Unexplained, host)
		}
	}
	a.unexplained = unexplained
}

// explained reports whether a claim names this box for the host. What cannot be
// read says nothing new.
func (a *Agent) explained(ctx context.Context, host string) bool {
	if _, ok := a.supervised(host); ok {
		return true
	}
	if hostclaim.CheckHost(host) != nil {
		return false
	}
	o, err := hostclaim.Read(ctx, a.control, host)
	if err != nil {
		a.log.Warn("look at what lies here", "host", host, "err", err)
		return !a.unexplained[host]
	}
	return names(o.Claim, a.self.Box) && a.concern(o)
}
