package agent_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/carlosframework/regionha/internal/agent"
	"github.com/carlosframework/regionha/internal/config"
)

// TestScripts runs command lines of the agent that end by themselves.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"agent": func(ts *testscript.TestScript, neg bool, args []string) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				code := config.Exit("agent", agent.Command(ctx, args, ts.Stdout(), ts.Stderr()), ts.Stderr())
				ts.Setenv("CODE", fmt.Sprint(code))
				if (code != 0) != neg {
					ts.Fatalf("exit code %d", code)
				}
			},
			"code": func(ts *testscript.TestScript, _ bool, args []string) {
				if got := ts.Getenv("CODE"); got != args[0] {
					ts.Fatalf("exit code %s, want %s", got, args[0])
				}
			},
		},
		Condition: func(name string) (bool, error) {
			return name == "root" && os.Geteuid() == 0, nil
		},
		RequireUniqueNames: true,
	})
}
