package agent

import (
	"context"
	"net/http"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/ingress"
	"github.com/carlosframework/regionha/internal/serve"
)

// makeGateway makes what serves HTTP for every host of the region.
func (a *Agent) makeGateway() (err error) {
	a.gateway, err = ingress.New(ingress.Config{
		Self: a.self.Box, Local: a.local, Home: a.homes.home, Changed: a.homes.changes, Look: a.lookFor,
		Unreachable: func(box string) { a.hints.Send(hint.Outgoing{Hint: hint.Hint{Box: box}, To: []string{}}) },
		PeerToken:   a.secret.Derive("ingress"), Log: a.log,
	})
	return err
}

// serveIngress takes requests until ctx ends, and answers those that it took.
func (a *Agent) serveIngress(ctx context.Context) error {
	return a.gateway.Serve(ctx, a.ingressListener)
}

// serveInternal takes hints from the other boxes.
func (a *Agent) serveInternal(ctx context.Context) error {
	handler := hint.Handler(&boxauth.Verifier{Secret: a.secret, Log: a.log}, func(h hint.Hint) {
		if h.Gen == 0 {
			a.homeMoved()
		}
		if hostclaim.CheckHost(h.Host) == nil && h.Gen > 0 && !a.knows(h.Host, h.Gen) {
			a.look(ctx, h.Host)
		}
	})
	return serve.HTTP(ctx, a.internalListener,
		&http.Server{Handler: handler, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}, time.Second)
}

func (a *Agent) local(name string) (ingress.Local, bool) {
	h, ok := a.row(name)
	if !ok {
		return ingress.Local{}, false
	}
	return h.local()
}

// lookFor looks at what a held request waits for: the host's claim if this box
// has a row, which wakes it where it sleeps, and where its home is.
func (a *Agent) lookFor(name string) {
	if h, ok := a.row(name); ok {
		h.want()
	}
	a.homes.soon()
}

// hintOf is what others are told of a claim that this box wrote.
func hintOf(c *hostclaim.Claim) hint.Outgoing {
	to := append([]string{}, c.Op.Participants...)
	return hint.Outgoing{Hint: hint.Hint{Host: c.Host, Gen: c.Gen}, To: append(to, c.Op.Intent.Source.Box)}
}
