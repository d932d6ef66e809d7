package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
)

// consoleServer is `console serve`: the same functions as the commands, for
// programs.
type consoleServer struct {
	*process
	url string
}

var apiBound = regexp.MustCompile(`msg="API listener bound" addr=(\S+)`)

func (r *region) startConsole(ctx context.Context) error {
	p, err := r.procs.start("console-serve", nil, nil, r.in("bin", "console"), "--config", r.in("keys", "console.yaml"),
		"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--identity-certs", r.cloud.Certs)
	if err != nil {
		return err
	}
	r.api = consoleServer{process: p}
	err = until(ctx, startWithin, "the console answers", func(context.Context) (bool, error) {
		log, err := os.ReadFile(p.log)
		if found := apiBound.FindSubmatch(log); found != nil {
			r.api.url = "http://" + string(found[1])
			return true, nil
		}
		if err == nil {
			err = p.ended()
		}
		return false, err
	})
	if err == nil {
		r.say("console serve answers at %s/api/v1/hosts", r.api.url)
	}
	return err
}

// says is the console's one sentence about the host.
func (c consoleServer) says(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/api/v1/hosts/"+hostName, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	var host struct {
		Status struct {
			Doing string `json:"doing"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &host); err != nil || host.Status.Doing == "" {
		return "", fmt.Errorf("console: %s: %s", resp.Status, body)
	}
	return host.Status.Doing, nil
}
