//go:build !unix

package region_test

import "time"

// processor is not known here.
func processor() time.Time { return time.Time{} }
