package simcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxControl bounds one body of the control API in bytes.
const maxControl = 1 << 20

// Control is the handler of the control API, which another process reaches
// through [Client]. It has no authentication: serve it on loopback.
func (c *Cloud) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /launch", act(func(in Instance) (any, error) { return c.launch(in) }))
	mux.HandleFunc("POST /terminate", act(func(in Instance) (any, error) { return nil, c.Terminate(in.ID) }))
	mux.HandleFunc("POST /stop", act(func(in Instance) (any, error) { return nil, c.Stop(in.ID) }))
	mux.HandleFunc("POST /start", act(func(in Instance) (any, error) { return nil, c.Start(in.ID) }))
	mux.HandleFunc("POST /attach", act(func(in attachment) (any, error) { return c.Attach(in.Instance, in.Volume) }))
	mux.HandleFunc("POST /detach", act(func(in attachment) (any, error) { return nil, c.Detach(in.Instance, in.Volume.ID) }))
	mux.HandleFunc("POST /post", act(func(in post) (any, error) { return nil, c.Post(in.Region, in.Body) }))
	mux.HandleFunc("POST /forget", act(func(in Instance) (any, error) { c.Forget(in.ID); return nil, nil }))
	mux.HandleFunc("POST /faults", act(func(f Fault) (any, error) { return nil, c.Inject(f) }))
	mux.HandleFunc("POST /clear-faults", act(func(struct{}) (any, error) { c.ClearFaults(); return nil, nil }))
	mux.HandleFunc("GET /instances", func(w http.ResponseWriter, _ *http.Request) { respond(w, c.Instances()) })
	return mux
}

// attachment is a volume at an instance, for the control API.
type attachment struct {
	Instance string `json:"instance"`
	Volume   Volume `json:"volume"`
}

// post is a message for a region's queue, for the control API.
type post struct {
	Region string `json:"region"`
	Body   []byte `json:"body"`
}

// act decodes a request, does it and answers its result.
func act[T any](do func(T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControl))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := do(in)
		switch {
		case errors.Is(err, ErrNoInstance):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusConflict)
		default:
			respond(w, out)
		}
	}
}

func respond(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}

// Client speaks to the control API of a cloud in another process.
type Client struct {
	URL string // of the control listener
}

// controlTimeout bounds one call. Nothing behind it waits.
const controlTimeout = 10 * time.Second

// Launch is [Cloud.Launch].
func (c Client) Launch(ctx context.Context, region, account string) (Instance, error) {
	return c.LaunchInGroup(ctx, region, account, "")
}

// LaunchInGroup is [Cloud.LaunchInGroup].
func (c Client) LaunchInGroup(ctx context.Context, region, account, group string) (Instance, error) {
	var out Instance
	err := c.call(ctx, "POST /launch", Instance{Region: region, Account: account, Group: group}, &out)
	return out, err
}

// Terminate is [Cloud.Terminate].
func (c Client) Terminate(ctx context.Context, id string) error {
	return c.call(ctx, "POST /terminate", Instance{ID: id}, nil)
}

// Stop is [Cloud.Stop].
func (c Client) Stop(ctx context.Context, id string) error {
	return c.call(ctx, "POST /stop", Instance{ID: id}, nil)
}

// Start is [Cloud.Start].
func (c Client) Start(ctx context.Context, id string) error {
	return c.call(ctx, "POST /start", Instance{ID: id}, nil)
}

// Attach is [Cloud.Attach].
func (c Client) Attach(ctx context.Context, id string, v Volume) (Volume, error) {
	var out Volume
	err := c.call(ctx, "POST /attach", attachment{id, v}, &out)
	return out, err
}

// Detach is [Cloud.Detach].
func (c Client) Detach(ctx context.Context, id, volume string) error {
	return c.call(ctx, "POST /detach", attachment{id, Volume{ID: volume}}, nil)
}

// Post is [Cloud.Post].
func (c Client) Post(ctx context.Context, region string, body []byte) error {
	return c.call(ctx, "POST /post", post{region, body}, nil)
}

// Forget is [Cloud.Forget].
func (c Client) Forget(ctx context.Context, id string) error {
	return c.call(ctx, "POST /forget", Instance{ID: id}, nil)
}

// Inject is [Cloud.Inject].
func (c Client) Inject(ctx context.Context, f Fault) error {
	return c.call(ctx, "POST /faults", f, nil)
}

// ClearFaults is [Cloud.ClearFaults].
func (c Client) ClearFaults(ctx context.Context) error {
	return c.call(ctx, "POST /clear-faults", struct{}{}, nil)
}

// Instances is [Cloud.Instances].
func (c Client) Instances(ctx context.Context) ([]Instance, error) {
	var out []Instance
	err := c.call(ctx, "GET /instances", nil, &out)
	return out, err
}

func (c Client) call(ctx context.Context, route string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("simcloud %s: %w", route, err)
	}
	method, path, _ := strings.Cut(route, " ")
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("simcloud %s: %w", route, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("simcloud %s: %w", route, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxControl))
	if err != nil {
		return fmt.Errorf("simcloud %s: %w", route, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("simcloud %s: %s: %s", route, resp.Status, bytes.TrimSpace(answer))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("simcloud %s: %w", route, err)
	}
	return nil
}
