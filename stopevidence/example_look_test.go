package stopevidence_test

import (
	"context"
	"errors"
	"time"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/stopevidence"
)

// A box that gives up a host has ended its processes, and waits until the kernel
// shows that they are gone. Then it closes the replicator, looks again with no
// exception, and publishes what it saw.
func ExampleCollect() {
	release := func(ctx context.Context, s stopevidence.Subject, store objstore.Store, rec stopevidence.Record, closeProducers func() error) error {
		replicator, err := stopevidence.ProcessDescriptors(s.Database, s.Database+"-wal", s.Database+"-shm")
		if err != nil {
			return err
		}
		for {
			_, err := stopevidence.WritersStopped(ctx, s, replicator)
			if held := (*stopevidence.HeldError)(nil); !errors.As(err, &held) {
				if err != nil {
					return err
				}
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := closeProducers(); err != nil {
			return err
		}
		checks, err := stopevidence.Collect(ctx, s)
		if err != nil {
			return err
		}
		rec.EvidenceAt = time.Now().UTC()
		rec.Checks = append(checks,
			stopevidence.Check{Name: stopevidence.AdmissionClosed, Passed: true},
			stopevidence.Check{Name: stopevidence.ProducersJoined, Passed: true})
		_, err = stopevidence.Publish(ctx, store, rec)
		return err
	}
	_ = release
}
