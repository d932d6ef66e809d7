//go:build !linux

package agent

import "errors"

func bootID() (string, error) { return "", errors.ErrUnsupported }
