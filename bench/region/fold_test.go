package region_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/carlosframework/regionha/placement"
)

// BenchmarkFold makes the home map of 100,000 names on 200 boxes, as each box
// does whenever it has read the edges files.
func BenchmarkFold(b *testing.B) {
	const boxes, each = 200, 500
	var files []placement.Published
	for i := range boxes {
		e := placement.Edges{Box: boxName(i), Region: place, Address: address(boxName(i), "80"), Hosts: map[string]placement.Host{}}
		for k := range each {
			name := fmt.Sprintf("h%06d.demo.example", i*each+k)
			e.Hosts[name] = placement.Host{Role: placement.RoleHome, Stamp: 1, App: "demo/notes"}
		}
		files = append(files, placement.Published{Edges: e, ModTime: time.Now()})
	}
	before := placement.Fold(files, nil, time.Now())
	b.ReportAllocs()
	began := processor()
	for b.Loop() {
		before = placement.Fold(files, before, time.Now())
	}
	b.ReportMetric(float64(processor().Sub(began).Milliseconds())/float64(b.N), "processor-ms/op")
}
