package boxvolumes_test

import (
	"fmt"
	"time"

	"github.com/carlosframework/regionha/boxvolumes"
)

// A box had one volume, which goes with its instance, until a second one was
// attached that does not.
func ExampleDischarge() {
	records := []boxvolumes.Record{
		seen(time.Minute, volume("vol-1")),
		seen(4*time.Hour, volume("vol-1")),
	}
	v := boxvolumes.Discharge(records, shop, enrolled, terminated)
	fmt.Println(v.Enrollment(), v.Discharged())

	kept := volume("vol-2")
	kept.DeleteOnTermination = false
	records = append(records, seen(270*time.Minute, volume("vol-1"), kept))
	v = boxvolumes.Discharge(records, shop, enrolled, terminated)
	fmt.Println(v.Enrollment(), v.Discharged())
	fmt.Println(v.Reason())

	// Output:
	// e-1 true
	// e-1 false
	// record of 2026-01-02T07:34:05.000000006Z: volume "vol-2" outlives its instance
}
