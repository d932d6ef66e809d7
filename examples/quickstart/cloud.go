package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/carlosframework/regionha/internal/simcloud"
)

// cloudCommand makes this program the simulated cloud instead.
const cloudCommand = "simcloud"

// awsRegion is where the simulated instances are.
const awsRegion = "eu-west-1"

// serveCloud is the child process of startCloud.
func serveCloud(ctx context.Context, args []string, ready io.Writer) error {
	var cfg simcloud.Config
	f := flag.NewFlagSet(cloudCommand, flag.ContinueOnError)
	f.StringVar(&cfg.CertDir, "certs", "", "")
	f.DurationVar(&cfg.ShutdownTime, "shutdown-time", 0, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	return simcloud.Serve(ctx, cfg, ready)
}

// cloud is the simulated cloud as this program sees it.
type cloud struct {
	simcloud.Client
	simcloud.Ready
}

// startCloud runs the simulated cloud as a child and waits for its addresses.
func startCloud(ctx context.Context, ps *processes, dir string, shutdown time.Duration) (cloud, error) {
	self, err := os.Executable()
	if err != nil {
		return cloud{}, err
	}
	out, in := io.Pipe()
	p, err := ps.start(cloudCommand, nil, in, self, cloudCommand,
		"-certs", filepath.Join(dir, "certs"), "-shutdown-time", shutdown.String())
	if err != nil {
		return cloud{}, err
	}
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	defer stop()
	go func() {
		<-p.done
		in.CloseWithError(fmt.Errorf("it ended: %v", p.err))
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return cloud{}, fmt.Errorf("the simulated cloud did not start: %w", err)
	}
	var c cloud
	if err := json.Unmarshal(line, &c.Ready); err != nil {
		return cloud{}, fmt.Errorf("the simulated cloud said %q: %w", line, err)
	}
	c.Client.URL = c.Control
	go io.Copy(io.Discard, out) // the pipe must not fill
	return c, nil
}
