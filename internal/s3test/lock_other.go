//go:build !unix

package s3test

import (
	"errors"
	"fmt"
)

func lock(string) (unlock func(), err error) {
	return nil, fmt.Errorf("lock the build of the S3 test server: %w", errors.ErrUnsupported)
}
