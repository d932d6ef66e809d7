//go:build !windows

package dirstore

import (
	"errors"
	"os"
)

// syncDir makes the entries of dir survive the loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
