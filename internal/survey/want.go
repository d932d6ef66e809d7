package survey

import (
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/placement"
)

// App is the app that the claim's host is an instance of, as edges files say it.
func App(h *hostclaim.Holder) string { return h.Account + "/" + h.App }

// Want is the placement that moves the claim's host: what it needs, with every
// box left out that the claim refuses, and those of exclude.
func Want(c *hostclaim.Claim, pool, secretFP string, exclude []string) placement.Want {
	return placement.Want{Region: c.Holder.Region, Pool: pool, SecretsKeyFP: secretFP,
		Lost: c.Lost, Owing: Owing(c), Excluded: append(Excluded(c), exclude...)}
}

// Excluded lists the boxes that may not be named as the claim's next target
// whatever else they are: the executor, and of a relocation the source, the
// target and those that were the target before.
func Excluded(c *hostclaim.Claim) []string {
	op := c.Op
	list := []string{op.Exec}
	if op.Kind == hostclaim.Relocating {
		list = append(list, op.Intent.Source.Box, op.Target().Box)
		list = append(list, op.Journal.Replaced...)
	}
	return list
}

// Owing lists the boxes that still have an old copy of the host to retire.
func Owing(c *hostclaim.Claim) (boxes []string) {
	for _, o := range c.Obligations {
		if o.Kind == hostclaim.ParkLocal {
			boxes = append(boxes, o.Box)
		}
	}
	return boxes
}
