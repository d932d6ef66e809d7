package agent

import (
	"fmt"
	"path/filepath"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/config"
)

// Settings are the agent's.
type Settings struct {
	config.Base
	BoxSettings
}

// BoxSettings are what a box takes beside what every binary does.
type BoxSettings struct {
	config.Deployment
	config.Admin
	config.SecretFile

	Box     string `help:"This box's reference: one DNS label, as it is enrolled." placeholder:"REF" required:""`
	Region  string `help:"This box's placement code, such as ie." placeholder:"CODE" required:""`
	DataDir string `help:"Where hosts live on this box (${default})." placeholder:"DIR" default:"/var/lib/regionha"`

	Ingress   string `help:"Address of HTTP for every host (${default})." placeholder:"ADDR" default:":8080"`
	Internal  string `help:"Address for the other boxes (${default})." placeholder:"ADDR" default:":8081"`
	Advertise string `help:"Host name or IP that peers dial; needed where the two listen on every interface." placeholder:"HOST"`
	Cgroup    string `help:"Cgroup v2 path for the apps of an agent that is root, or off. Empty: below the agent's own." placeholder:"PATH"`
	Helper    string `help:"Socket of the root helper, which runs the apps of an agent that is not root." placeholder:"PATH"`

	Crash string `help:"For tests of recovery: end as if killed at this point of an operation." placeholder:"POINT" hidden:""`
}

func (s Settings) check() error {
	if err := boxid.CheckRef(s.Box); err != nil {
		return fmt.Errorf("%w: box: %w", config.ErrUsage, err)
	}
	if err := boxid.CheckRef(s.Region); err != nil {
		return fmt.Errorf("%w: region: %w", config.ErrUsage, err)
	}
	if !filepath.IsAbs(s.DataDir) {
		return fmt.Errorf("%w: data-dir is %q, want an absolute path", config.ErrUsage, s.DataDir)
	}
	if s.Helper != "" && !filepath.IsAbs(s.Helper) {
		return fmt.Errorf("%w: helper is %q, want the absolute path of a socket", config.ErrUsage, s.Helper)
	}
	if s.Crash != "" && !contains(crashPoints, s.Crash) {
		return fmt.Errorf("%w: crash is %q, want one of %q", config.ErrUsage, s.Crash, crashPoints)
	}
	return nil
}
