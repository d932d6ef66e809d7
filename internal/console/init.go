package console

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/roster"
)

// Deployment is what an operator decides about a new one.
type Deployment struct {
	Control string // store URL of the control bucket
	Bucket  string // its name, which the roster is bound to
	Region  string // placement code of the first region, such as ie
	Place   roster.Region
	Out     string // directory for keys and settings
}

var (
	regionCode = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	account    = regexp.MustCompile(`^[0-9]{12}$`)
	awsRegion  = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)
)

func (d Deployment) check() error {
	for _, f := range []struct {
		name, got, want string
		form            *regexp.Regexp
	}{
		{"--region", d.Region, "a placement code such as ie: one lower-case DNS label", regionCode},
		{"--account", d.Place.Account, "the 12 digits of the cloud account", account},
		{"--aws-region", d.Place.AWSRegion, "a cloud region such as eu-west-1", awsRegion},
	} {
		if !f.form.MatchString(f.got) {
			return fmt.Errorf("%s: got %q, want %s", f.name, f.got, f.want)
		}
	}
	return checkGroup(d.Place)
}

// checkGroup holds the Auto Scaling group of a region to its account and cloud
// region. A region may have none.
func checkGroup(r roster.Region) error {
	if r.GroupName == "" && r.GroupARN == "" {
		return nil
	}
	start, end := fmt.Sprintf(":autoscaling:%s:%s:autoScalingGroup:", r.AWSRegion, r.Account), ":autoScalingGroupName/"+r.GroupName
	if r.GroupName == "" || !strings.HasPrefix(r.GroupARN, "arn:aws") || !strings.Contains(r.GroupARN, start) || !strings.HasSuffix(r.GroupARN, end) {
		return fmt.Errorf("--group-arn: got %q, want arn:aws%s...%s", r.GroupARN, start, end)
	}
	return nil
}

// file is one file of a new deployment.
type file struct {
	name, body string
	mode       fs.FileMode
}

// dialled is the one setting that no default can know.
const dialled = "# advertise: 10.0.0.11 # what the other machines dial to reach this one"

// files makes the keys and the settings. Private halves are readable by their
// owner only.
func (d Deployment) files(public ed25519.PublicKey, private ed25519.PrivateKey, secret boxauth.Secret) []file {
	return []file{
		{"roster.key", roster.EncodeKey(private) + "\n", 0o600},
		{"roster.pub", roster.EncodeKey(public) + "\n", 0o644},
		{"secret", secret.Text() + "\n", 0o600},
		{"console.yaml", d.settings(public, "# Settings of the console, on the machine of whoever runs the deployment.\n",
			"roster-private-key: "+d.path("roster.key")), 0o644},
		{"worker.yaml", d.settings(public, "# Settings of a worker: one or more a region, each on an enrolled machine.\n",
			"box: worker-1 # name of this machine, never used again for another", dialled), 0o644},
		{"agent.yaml", d.settings(public, "# Settings of an agent: one on each box.\n",
			"box: box-1 # name of this machine, never used again for another", dialled), 0o644},
	}
}

func (d Deployment) settings(public ed25519.PublicKey, about string, more ...string) string {
	lines := append([]string{
		fmt.Sprintf("control: %q", d.Control),
		fmt.Sprintf("region: %q", d.Region),
		fmt.Sprintf("roster-key: %q", roster.EncodeKey(public)),
		"secret-file: " + d.path("secret"),
	}, more...)
	return about + strings.Join(lines, "\n") + "\n"
}

func (d Deployment) path(name string) string { return fmt.Sprintf("%q", filepath.Join(d.Out, name)) }

// Init starts a deployment: keys, secret and settings in d.Out, and the signed
// roster with its first region in the control store. It overwrites nothing,
// there or here.
func Init(ctx context.Context, s objstore.Store, d Deployment) error {
	refuse := func(err error, next string) error {
		return &Refusal{What: "no deployment was made", Err: err, Next: next}
	}
	if err := d.check(); err != nil {
		return refuse(err, "correct it and run it again; nothing was written")
	}
	switch _, err := s.Get(ctx, roster.Key); {
	case err == nil:
		return refuse(errors.New("the control store holds a deployment already"), "name another --control, or use the keys of that deployment")
	case !errors.Is(err, objstore.ErrNotFound):
		return refuse(err, "see that the store can be reached, and run it again")
	}
	if err := storetest.Guard(ctx, s); err != nil {
		return refuse(err, "see what is wrong with it: console store check '"+d.Control+"'")
	}
	public, private := roster.GenerateKey()
	written, err := writeNew(d.Out, d.files(public, private, boxauth.NewSecret()))
	if err != nil {
		return refuse(errors.Join(err, removeAll(written)), "name a new directory with --out")
	}
	_, err = roster.Create(ctx, s, private, roster.Roster{DeploymentBucket: d.Bucket, Regions: map[string]roster.Region{d.Region: d.Place}})
	switch {
	case errors.Is(err, objstore.ErrUnknown):
		return fmt.Errorf("the roster may have been written or not: %w\nnext: run: console --config %s box list; if there is no roster, remove %s and run init again",
			err, filepath.Join(d.Out, "console.yaml"), d.Out)
	case err != nil:
		return refuse(errors.Join(err, removeAll(written)), "see that the store can be written, and run it again")
	}
	return nil
}

// writeNew writes files that are not there yet, each durable before the next,
// and returns the paths that it made, also where it fails.
func writeNew(dir string, files []file) (written []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
		if err != nil {
			return written, err
		}
		written = append(written, path)
		_, err = out.WriteString(f.body)
		if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
			return written, err
		}
	}
	return written, nil
}

func removeAll(paths []string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}
