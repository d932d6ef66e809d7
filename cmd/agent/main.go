// Command agent is a box of a regionha deployment: it runs the hosts that
// claims name it for, and serves every host of its region. It is also the root
// helper of an agent that is not root. Run "agent --help".
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
	os.Exit(config.Exit("agent", agent.Command(ctx, os.Args[1:], os.Stdout, os.Stderr), os.Stderr))
}
