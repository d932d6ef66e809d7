package hostdb_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// A host goes from box to box, by prepared generations and by cold admissions,
// and each box is lost without a word. Every row that was in the store is there
// at the end.
func TestEveryReplicatedRowSurvivesManyHops(t *testing.T) {
	s := memstore.New()
	var want []string
	write := func(b box, r *hostdb.Replicator, hop string) {
		a := startApp(t, b.path())
		a.exec(createNotes)
		for i := range 3 {
			want = append(want, fmt.Sprintf("%s %d", hop, i))
			a.insert(want[len(want)-1])
			durable(t, r)
		}
		a.insert("never in the store") // the box is lost here
		a.end()
	}
	b := newBox(t, s)
	write(b, b.bootstrap("g0"), "g0")
	last := "g0"
	for hop := range 3 {
		b := newBox(t, s)
		p := fmt.Sprintf("p%d", hop)
		_, cfg := b.prepare(b.selected(hostdb.Link{Generation: last}), p)
		write(b, b.open(cfg), p)

		b = newBox(t, s)
		g := fmt.Sprintf("g%d", hop+1)
		_, err := hostdb.Restore(t.Context(), s, b.selected(hostdb.Link{Generation: p}), b.path(), nil)
		require.NoError(t, err)
		write(b, b.open(b.config(g)), g)
		last = g
	}
	require.Equal(t, want, newBox(t, s).restored(last))
}
