// Command worker drives a region of a regionha deployment: it fences boxes
// that are gone and moves their hosts to others. Run "worker --help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/internal/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var set worker.Settings
	app := config.App{Name: "worker", Description: worker.Description, Stdout: os.Stdout, Stderr: os.Stderr}
	_, err := config.Parse(&set, app, os.Args[1:])
	if err == nil {
		err = worker.Run(ctx, set, newCloud)
	}
	os.Exit(config.Exit("worker", err, os.Stderr))
}
