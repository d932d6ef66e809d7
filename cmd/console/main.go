// Command console is for the people and programs in front of a regionha
// deployment: it makes one, enrolls its boxes, creates hosts, and says what is
// going on. Run "console --help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/internal/console"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := console.App{Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(config.Exit("console", app.Run(ctx, os.Args[1:]), os.Stderr))
}
