package claimtest_test

import (
	"fmt"
	"testing"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

// console is a platform's own, as its tests would run it: it creates the host on
// the first box that lives, and tells people of losses.
type console struct{}

func (console) Actor() string { return claimtest.Console }

func (console) Next(w *claimtest.World, o hostclaim.Observed) hostclaim.Transition {
	c := o.Claim
	switch {
	case c == nil || c.Op.Kind == hostclaim.Free:
		for _, b := range w.Boxes {
			if !b.Gone() {
				return hostclaim.BeginCreate(hostclaim.NewHost{
					Incarnation: w.ID("i"), Account: "demo", App: "shop", Region: w.Region, RecordSHA256: "aa11",
					RecordKey: "apps/demo/shop/instances/" + w.Host + ".json",
				}, w.ID("op"), "console", w.Now, b.Member())
			}
		}
	case len(c.EvidenceRefs) > 0:
		return hostclaim.ReportLoss(c.EvidenceRefs[0].ID)
	case len(c.PendingLosses()) > 0:
		return hostclaim.ReportLoss(c.PendingLosses()[0].ID)
	}
	return nil
}

// A platform's console meets honest boxes and workers, and everything that can
// befall them. A test passes its own *testing.T to NewProofs.
func Example() {
	options := claimtest.Options{
		Proofs:  claimtest.NewProofs(noTest{}),
		Drivers: func() []claimtest.Driver { return []claimtest.Driver{console{}} },
	}
	var all claimtest.Report
	for seed := range uint64(50) {
		report, err := claimtest.Run(seed, options)
		if err != nil {
			fmt.Println(err)
			return
		}
		all.Add(report)
	}
	fmt.Println(all.Sequences, "sequences, and no property was broken")
	// Output:
	// 50 sequences, and no property was broken
}

// noTest stands for the test that an example has none of.
type noTest struct{ testing.TB }

func (noTest) Helper()                           {}
func (noTest) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (noTest) FailNow()                          { panic("failed") }
