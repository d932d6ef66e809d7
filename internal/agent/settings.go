package agent

import (
	"fmt"
	"path/filepath"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/config"
)

// Description is the first words of the binary's help.
const Description = "A box of a regionha deployment: runs the hosts that claims name it for, and serves every host of its region."

// Settings are the agent's.
type Settings struct {
	config.Base
	config.Deployment
	config.Admin
	config.SecretFile

	Box     string `help:"This box's reference: one DNS label, as it is enrolled." placeholder:"REF" required:""`
	Region  string `help:"This box's placement code, such as ie." placeholder:"CODE" required:""`
	DataDir string `help:"Where hosts live on this box (${default})." placeholder:"DIR" default:"/var/lib/regionha"`

	Ingress   string `help:"Address of HTTP for every host (${default})." placeholder:"ADDR" default:":8080"`
	Internal  string `help:"Address for the other boxes (${default})." placeholder:"ADDR" default:":8081"`
	Advertise string `help:"Host name or IP that peers dial; needed where the two listen on every interface." placeholder:"HOST"`
	Cgroup    string `help:"Cgroup v2 path for the apps, or off. Empty: below the agent's own." placeholder:"PATH"`
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
	return nil
}
