// Command agent is a box of a regionha deployment: it runs the hosts that
// claims name it for, and serves every host of its region. Run "agent --help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/carlosframework/regionha/internal/agent"
	"github.com/carlosframework/regionha/internal/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var set agent.Settings
	app := config.App{Name: "agent", Description: agent.Description, Stdout: os.Stdout, Stderr: os.Stderr}
	_, err := config.Parse(&set, app, os.Args[1:])
	if err == nil {
		err = agent.Run(ctx, set)
	}
	os.Exit(config.Exit("agent", err, os.Stderr))
}
