package claim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/s3test"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

// benchHost makes claims of one host by public transitions alone. id makes its
// names.
type benchHost struct {
	testing.TB
	id  func(n int) string
	now hostclaim.Observed
}

// typicalClaim is a claim as most are: serving on its third session. Each was
// published, and those before it ended cleanly.
func typicalClaim(tb testing.TB) hostclaim.Observed {
	h := newBenchHost(tb, "notes.demo.example", "box-1", func(n int) string { return fmt.Sprintf("%032x", n) })
	for n := range 3 {
		a := h.admission(n)
		if n > 0 {
			a.Coverage, a.Baseline = hostclaim.CleanReturn, h.end()
		}
		h.step(hostclaim.AdmitWriter(a))
		h.step(hostclaim.PublishGeneration(a.Box, h.now.Claim.Holder.Session))
	}
	return h.now
}

// unfinished is how many sessions worstClaim admits: as many as a claim keeps,
// and one that is published.
const unfinished = 33

// worstClaim is as large as a claim gets by admissions: sessions to their bound
// that never published, each of which lost writes, and a chore for each of their
// generations. Every name that goes into these has its longest legal length.
func worstClaim(tb testing.TB) hostclaim.Observed {
	h := newBenchHost(tb, strings.Repeat("n.", 99)+"ex", strings.Repeat("b", 63), func(n int) string { return fmt.Sprintf("%0128x", n) })
	for n := range unfinished {
		a := h.admission(n)
		if n > 0 {
			a.Baseline = hostclaim.Position{Generation: a.Generation, TXID: 1 << 63, FilesGeneration: a.Generation, FilesSeq: 1 << 63}
		}
		h.step(hostclaim.AdmitWriter(a))
	}
	h.step(hostclaim.PublishGeneration(h.now.Claim.Op.Exec, h.now.Claim.Holder.Session))
	return h.now
}

// newBenchHost is a host after its create.
func newBenchHost(tb testing.TB, name, box string, id func(int) string) *benchHost {
	h := &benchHost{tb, id, hostclaim.Observed{Host: name}}
	h.step(hostclaim.BeginCreate(hostclaim.NewHost{
		Incarnation: id(2), Account: "demo", App: "notes", Region: "ie",
		RecordKey: "apps/demo/notes/instances/" + name + ".json", RecordSHA256: strings.Repeat("ab", 32),
	}, id(3), "console", time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), hostclaim.Member{Box: box, Enrollment: id(1)}))
	h.step(hostclaim.CompleteCreate(id(3), box, id(1)))
	return h
}

func (h *benchHost) step(t hostclaim.Transition) {
	h.Helper()
	c, err := h.now.Next(record.Nonce(), t)
	require.NoError(h, err)
	h.now.Claim = c
}

// admission asks for the n-th session.
func (h *benchHost) admission(n int) hostclaim.Admission {
	c := h.now.Claim
	return hostclaim.Admission{
		Op: c.Op.ID, Phase: c.Op.Phase, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: c.Op.Exec, NewGeneration: h.id(1000 + n), KeepStamp: c.Holder.Session == 0,
	}
}

// end ends the current session and returns its final position.
func (h *benchHost) end() hostclaim.Position {
	w := h.now.Claim.Holder
	final := hostclaim.Position{Generation: w.Generation, TXID: 4711, FilesGeneration: w.Generation, FilesSeq: 12}
	h.step(hostclaim.EndSession(w.WriterBox, w.Session, final))
	return final
}

// benchClaims are what the benchmarks run on.
var benchClaims = []struct {
	name string
	make func(testing.TB) hostclaim.Observed
}{{"typical", typicalClaim}, {"worst", worstClaim}}

// onClaims runs a benchmark on each claim, with its stored bytes.
func onClaims(b *testing.B, run func(b *testing.B, o hostclaim.Observed, body []byte)) {
	for _, c := range benchClaims {
		o := c.make(b)
		body, err := record.Encode(o.Claim)
		require.NoError(b, err)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			run(b, o, body)
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	onClaims(b, func(b *testing.B, _ hostclaim.Observed, body []byte) {
		for b.Loop() {
			if _, err := hostclaim.Decode(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	onClaims(b, func(b *testing.B, o hostclaim.Observed, _ []byte) {
		for b.Loop() {
			if err := o.Claim.Validate(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkNext(b *testing.B) {
	onClaims(b, func(b *testing.B, o hostclaim.Observed, _ []byte) {
		nonce, admit := record.Nonce(), anotherSession(o)
		for b.Loop() {
			if _, err := o.Next(nonce, admit); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	onClaims(b, func(b *testing.B, o hostclaim.Observed, _ []byte) {
		for b.Loop() {
			if _, err := record.Encode(o.Claim); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// anotherSession admits another session after what was observed.
func anotherSession(o hostclaim.Observed) hostclaim.Transition {
	w := o.Claim.Holder
	return hostclaim.AdmitWriter(hostclaim.Admission{
		Op: o.Claim.Op.ID, Phase: o.Claim.Op.Phase, Session: w.Session, Generation: w.Generation,
		Box: o.Claim.Op.Exec, NewGeneration: "next",
		Baseline: hostclaim.Position{Generation: w.Generation, TXID: 1, FilesGeneration: w.Generation, FilesSeq: 1},
	})
}

// BenchmarkUpdate makes one Update and one bare conditional PUT of the same
// bytes in turn, so that both see the same machine. It reports the median of
// each, and of what an Update takes beside its own PUT: where a store takes
// milliseconds, update/put has that store's noise in it and own/put has not.
func BenchmarkUpdate(b *testing.B) {
	for _, s := range []struct {
		name string
		open func(testing.TB) objstore.Store
	}{
		{"memstore", func(testing.TB) objstore.Store { return memstore.New() }},
		{"dirstore", func(tb testing.TB) objstore.Store { return openStore(tb, "dir://"+tb.TempDir()) }},
		{"s3", func(tb testing.TB) objstore.Store { return openStore(tb, s3test.Start(tb)) }},
	} {
		for _, c := range benchClaims {
			b.Run(s.name+"/"+c.name, func(b *testing.B) { besidePuts(b, s.open(b), c.make(b)) })
		}
	}
}

func openStore(tb testing.TB, url string) objstore.Store {
	s, err := storeurl.Open(context.Background(), url)
	require.NoError(tb, err)
	return s
}

// lastPut keeps the body of the last PUT, and how long it took.
type lastPut struct {
	objstore.Store
	body []byte
	took time.Duration
}

func (l *lastPut) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	began := time.Now()
	info, err := l.Store.Put(ctx, key, body, cond)
	l.body, l.took = body, time.Since(began)
	return info, err
}

// besidePuts updates a claim, and puts what was written under another key. Each
// Update makes the same step of the same claim, over whatever version is there.
func besidePuts(b *testing.B, s objstore.Store, o hostclaim.Observed) {
	ctx, store, step := context.Background(), &lastPut{Store: s}, anotherSession(o)
	body, err := record.Encode(o.Claim)
	require.NoError(b, err)
	claim, err := s.Put(ctx, hostclaim.Key(o.Host), body, objstore.IfAbsent())
	require.NoError(b, err)
	bare, err := s.Put(ctx, hostclaim.Key("bare"), body, objstore.IfAbsent())
	require.NoError(b, err)
	o.ETag = claim.ETag

	var updates, own, puts []time.Duration
	for b.Loop() {
		began := time.Now()
		written, err := hostclaim.Update(ctx, store, o, step)
		took := time.Since(began)
		if err != nil {
			b.Fatal(err)
		}
		updates, own = append(updates, took), append(own, took-store.took)
		began = time.Now()
		info, err := s.Put(ctx, bare.Key, store.body, objstore.IfMatch(bare.ETag))
		puts = append(puts, time.Since(began))
		if err != nil {
			b.Fatal(err)
		}
		o.ETag, bare = written.ETag, info
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(updates), "update-ns/op")
	b.ReportMetric(median(own), "own-ns/op")
	b.ReportMetric(median(puts), "put-ns/op")
	b.ReportMetric(median(updates)/median(puts), "update/put")
	b.ReportMetric(median(own)/median(puts), "own/put")
}

// median returns the middle duration, in nanoseconds.
func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2])
}
