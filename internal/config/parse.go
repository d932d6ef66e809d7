package config

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// ErrDone: the command line asked for --help, --version or --check-config and
// has been answered. Nothing is left to do.
var ErrDone = errors.New("done")

// ErrUsage: the command line or the settings are wrong, and nothing was tried.
var ErrUsage = errors.New("usage")

// App says whose settings are read and where answers go.
type App struct {
	Name        string // of the binary: agent, worker, console
	Description string // the first words of --help
	File        string // settings file where --config is not given; /etc/regionha/<name>.yaml if ""
	Stdout      io.Writer
	Stderr      io.Writer
}

// Parse reads args, the environment and the settings file into settings, a
// pointer to a struct that embeds [Base]. The context it returns knows the
// selected command. Errors: [ErrDone], [ErrUsage].
func Parse(settings any, app App, args []string) (*kong.Context, error) {
	if app.File == "" {
		app.File = "/etc/regionha/" + app.Name + ".yaml"
	}
	done := false
	parser, err := kong.New(settings,
		kong.Name(app.Name),
		kong.Description(app.Description),
		kong.Writers(app.Stdout, app.Stderr),
		kong.Exit(func(int) { done = true }), // kong goes on; what it then finds does not matter
		kong.Vars{"config_file": app.File, "version": version(app.Name)},
		kong.DefaultEnvars("REGIONHA"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return nil, fmt.Errorf("%s: settings struct: %w", app.Name, err)
	}
	ctx, err := parser.Parse(args)
	switch {
	case done:
		return nil, ErrDone
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	case checkOnly(ctx):
		fmt.Fprintf(app.Stdout, "%s: the settings are good\n", app.Name)
		return nil, ErrDone
	}
	return ctx, nil
}

func checkOnly(ctx *kong.Context) bool {
	for _, f := range ctx.Model.Flags {
		if f.Name == "check-config" {
			return f.Target.Bool()
		}
	}
	return false
}

// ExitCode is what the process ends with: 0 for nil and [ErrDone], 2 for
// [ErrUsage], 1 for anything else.
func ExitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, ErrDone):
		return 0
	case errors.Is(err, ErrUsage):
		return 2
	}
	return 1
}

// Exit tells a person on stderr what went wrong, if anything did, and returns
// [ExitCode].
func Exit(name string, err error, stderr io.Writer) int {
	code := ExitCode(err)
	switch code {
	case 1:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	case 2:
		fmt.Fprintf(stderr, "%s: %v\nRun \"%s --help\" for what it takes.\n", name, err, name)
	}
	return code
}

func version(name string) string {
	v, commit := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		v = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " " + s.Value
			}
		}
	}
	return fmt.Sprintf("regionha %s %s%s %s %s/%s", name, v, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
