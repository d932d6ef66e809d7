package hostguard_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostguard"
)

func plan(stamp uint64) hostguard.Install {
	return hostguard.Install{Op: "op-1", Stamp: stamp, Prepared: "p-1", InstallManifest: "db/p-1/install.json", InstallSHA256: "aa",
		FilesManifest: "files/p-1/manifest.json", FilesManifestSHA256: "bb"}
}

// in runs one step of stamp.
func in(t *testing.T, g *hostguard.Guard, stamp uint64, fn func(*hostguard.Held) error) error {
	t.Helper()
	return g.With(t.Context(), stamp, fn)
}

func begin(t *testing.T, g *hostguard.Guard, p hostguard.Install) (done bool, err error) {
	t.Helper()
	err = in(t, g, p.Stamp, func(h *hostguard.Held) (err error) { done, err = h.BeginInstall(p); return err })
	return done, err
}

func finish(t *testing.T, g *hostguard.Guard, p hostguard.Install) error {
	t.Helper()
	return in(t, g, p.Stamp, func(h *hostguard.Held) error { return h.FinishInstall(p) })
}

func TestAnInstallVerifiesOnlyOnceItIsFinished(t *testing.T) {
	g, dir := active(t, 7)
	require.ErrorIs(t, g.VerifyInstall(plan(7)), hostguard.ErrNoInstall)
	require.ErrorIs(t, finish(t, g, plan(7)), hostguard.ErrNoInstall, "what was not begun cannot be finished")

	done, err := begin(t, g, plan(7))
	require.NoError(t, err)
	require.False(t, done)
	g = open(t, dir, me) // after a crash
	require.ErrorIs(t, g.VerifyInstall(plan(7)), hostguard.ErrNoInstall)
	done, err = begin(t, g, plan(7))
	require.NoError(t, err)
	require.False(t, done, "a begun install is made again")

	require.NoError(t, finish(t, g, plan(7)))
	require.NoError(t, finish(t, g, plan(7)))
	require.NoError(t, open(t, dir, me).VerifyInstall(plan(7)))
	done, err = begin(t, g, plan(7))
	require.NoError(t, err)
	require.True(t, done)
}

func TestAnInstallVerifiesOnlyAsExactlyItself(t *testing.T) {
	g, _ := active(t, 7)
	_, err := begin(t, g, plan(7))
	require.NoError(t, err)
	require.NoError(t, finish(t, g, plan(7)))
	for name, change := range map[string]func(*hostguard.Install){
		"op":              func(p *hostguard.Install) { p.Op = "op-2" },
		"stamp":           func(p *hostguard.Install) { p.Stamp = 6 },
		"prepared":        func(p *hostguard.Install) { p.Prepared = "p-2" },
		"manifest":        func(p *hostguard.Install) { p.InstallManifest = "x" },
		"digest":          func(p *hostguard.Install) { p.InstallSHA256 = "x" },
		"empty":           func(p *hostguard.Install) { p.InstallManifest, p.InstallSHA256 = "", "" },
		"files":           func(p *hostguard.Install) { p.FilesManifest = "x" },
		"files digest":    func(p *hostguard.Install) { p.FilesManifestSHA256 = "x" },
		"nothing":         func(p *hostguard.Install) { *p = hostguard.Install{} },
		"half a manifest": func(p *hostguard.Install) { p.InstallSHA256 = "" },
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(7)
			change(&p)
			require.ErrorIs(t, g.VerifyInstall(p), hostguard.ErrNoInstall)
		})
	}
	other := plan(7)
	other.Prepared = "p-2"
	_, err = begin(t, g, other)
	require.ErrorIs(t, err, hostguard.ErrStale, "one stamp is one install")
	require.NoError(t, g.VerifyInstall(plan(7)))
}

func TestAnEmptyInstallNeedsItsFilesManifest(t *testing.T) {
	g, _ := active(t, 7)
	p := plan(7)
	p.InstallManifest, p.InstallSHA256 = "", ""
	_, err := begin(t, g, p)
	require.NoError(t, err)
	p.FilesManifest = ""
	_, err = begin(t, g, p)
	require.ErrorContains(t, err, "files manifest")
	half := plan(7)
	half.InstallSHA256 = ""
	_, err = begin(t, g, half)
	require.ErrorContains(t, err, "both or neither")
	require.ErrorIs(t, open(t, t.TempDir(), me).VerifyInstall(hostguard.Install{}), hostguard.ErrNoInstall)
}

func TestANewerInstallationReplacesTheInstall(t *testing.T) {
	g, _ := active(t, 7)
	_, err := begin(t, g, plan(7))
	require.NoError(t, err)
	require.NoError(t, finish(t, g, plan(7)))
	require.NoError(t, g.Activate(t.Context(), "i-1", 9))
	_, err = begin(t, g, plan(7))
	require.ErrorIs(t, err, hostguard.ErrStale)
	require.ErrorIs(t, in(t, g, 9, func(h *hostguard.Held) error { return h.FinishInstall(plan(7)) }), hostguard.ErrStale)
	_, err = begin(t, g, plan(9))
	require.NoError(t, err)
	require.ErrorIs(t, g.VerifyInstall(plan(7)), hostguard.ErrNoInstall)
}

func ask(gen string) func(*hostguard.Held) error {
	return func(h *hostguard.Held) error { return h.AskSession(gen) }
}

func restored(gen string) func(*hostguard.Held) error {
	return func(h *hostguard.Held) error { return h.RestoredSession(gen) }
}

func end(gen string, f hostguard.Final) func(*hostguard.Held) error {
	return func(h *hostguard.Held) error { return h.EndSession(gen, f) }
}

func flushable(gen string) func(*hostguard.Held) error {
	return func(h *hostguard.Held) error { return h.Flushable(gen) }
}

var final = hostguard.Final{Generation: "g-1", TXID: 9, FilesGeneration: "g-1", FilesSeq: 2}

func TestASessionGoesFromAskedToRestoredToEnded(t *testing.T) {
	g, dir := active(t, 7)
	_, found, err := g.Session()
	require.NoError(t, err)
	require.False(t, found)
	require.ErrorIs(t, in(t, g, 7, restored("g-1")), hostguard.ErrSession, "an admission is journaled before it is asked for")

	require.NoError(t, in(t, g, 7, ask("g-1")))
	require.NoError(t, in(t, g, 7, ask("g-1")))
	require.ErrorIs(t, in(t, g, 7, flushable("g-1")), hostguard.ErrSession)
	require.NoError(t, g.Activate(t.Context(), "i-1", 8)) // the admission's new stamp
	require.NoError(t, in(t, g, 8, restored("g-1")))
	require.ErrorIs(t, in(t, g, 8, restored("g-1")), hostguard.ErrSession, "a session is restored once")
	require.NoError(t, in(t, open(t, dir, me), 8, flushable("g-1")))
	require.ErrorIs(t, in(t, g, 8, flushable("g-2")), hostguard.ErrSession)
	require.ErrorIs(t, in(t, g, 8, ask("g-1")), hostguard.ErrSession, "no generation is asked for twice")

	require.NoError(t, in(t, g, 8, end("g-1", final)))
	require.NoError(t, in(t, g, 8, end("g-1", final)))
	other := final
	other.TXID++
	require.ErrorIs(t, in(t, g, 8, end("g-1", other)), hostguard.ErrSession)
	for _, step := range []func(*hostguard.Held) error{restored("g-1"), flushable("g-1"), ask("g-1")} {
		require.ErrorIs(t, in(t, g, 8, step), hostguard.ErrSession, "what has ended never runs again")
	}
	s, found, err := open(t, dir, me).Session()
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, hostguard.Session{Generation: "g-1", Number: 8, Incarnation: "i-1", BootID: "boot-1",
		Step: hostguard.Ended, Final: &final}, s)
	require.NoError(t, in(t, g, 8, ask("g-2")))
}

func TestNothingIsFlushedAfterAnotherBoot(t *testing.T) {
	g, dir := active(t, 7)
	require.NoError(t, in(t, g, 7, ask("g-1")))
	require.NoError(t, in(t, g, 7, restored("g-1")))
	rebooted := open(t, dir, hostguard.Identity{Box: me.Box, Enrollment: me.Enrollment, BootID: "boot-2"})
	require.ErrorIs(t, in(t, rebooted, 7, flushable("g-1")), hostguard.ErrSession)
	require.ErrorIs(t, in(t, rebooted, 7, restored("g-1")), hostguard.ErrSession)
	require.NoError(t, in(t, rebooted, 7, ask("g-2")), "it starts cold")
}

func TestASessionOfAnotherStampIsNotTheHeldOnes(t *testing.T) {
	g, _ := active(t, 7)
	require.NoError(t, in(t, g, 7, ask("g-1")))
	require.NoError(t, in(t, g, 7, restored("g-1")))
	require.NoError(t, g.Activate(t.Context(), "i-1", 8))
	for _, step := range []func(*hostguard.Held) error{flushable("g-1"), restored("g-1"), end("g-1", final)} {
		require.ErrorIs(t, in(t, g, 8, step), hostguard.ErrSession)
	}
}

func TestASessionThatWasOnlyAskedForEndsAtItsBaseline(t *testing.T) {
	g, _ := active(t, 7)
	require.NoError(t, in(t, g, 7, ask("g-2")))
	require.ErrorIs(t, in(t, g, 7, end("g-1", final)), hostguard.ErrSession)
	require.ErrorContains(t, in(t, g, 7, ask("")), "empty generation")
	require.NoError(t, in(t, g, 7, end("g-2", final)))
}

func TestASessionEndsUnderTheFence(t *testing.T) {
	g, _ := active(t, 7)
	require.NoError(t, in(t, g, 7, ask("g-1")))
	require.NoError(t, in(t, g, 7, restored("g-1")))
	require.NoError(t, g.BeginFence(t.Context(), 7, "op-1"))
	require.ErrorIs(t, in(t, g, 7, ask("g-2")), hostguard.ErrFenced)
	require.NoError(t, g.WithFence(t.Context(), 7, "op-1", flushable("g-1")))
	require.NoError(t, g.WithFence(t.Context(), 7, "op-1", end("g-1", final)))
}

func TestADamagedJournalIsNeverAnAbsentOne(t *testing.T) {
	g, dir := active(t, 7)
	for _, name := range []string{"session.json", "install.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "hosts", host, "install", name), []byte("{}\n"), 0o600))
	}
	before := tree(t, dir)
	_, _, err := g.Session()
	require.ErrorIs(t, err, hostguard.ErrMalformed)
	require.ErrorIs(t, in(t, g, 7, ask("g-1")), hostguard.ErrMalformed)
	require.ErrorIs(t, g.VerifyInstall(plan(7)), hostguard.ErrMalformed)
	_, err = begin(t, g, plan(7))
	require.ErrorIs(t, err, hostguard.ErrMalformed)
	require.Equal(t, before, tree(t, dir))
}

func TestAnAcknowledgementIsNeverRewritten(t *testing.T) {
	g, dir := active(t, 7)
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	first, err := g.Acknowledge(t.Context(), "op-1", at)
	require.NoError(t, err)
	require.Equal(t, hostguard.Participation{V: 1, Host: host, Op: "op-1", Box: "box-1", Enrollment: "e-1", At: at}, first)
	again, err := open(t, dir, me).Acknowledge(t.Context(), "op-1", at.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, first, again)

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "hosts")))
	other := open(t, dir, hostguard.Identity{Box: "box-1", Enrollment: "e-2", BootID: "boot-1"})
	_, err = other.Acknowledge(t.Context(), "op-1", at)
	require.ErrorIs(t, err, hostguard.ErrForeign)

	require.NoError(t, g.Forget(t.Context(), "op-1"))
	require.NoError(t, g.Forget(t.Context(), "op-1"))
	list, damaged, err := hostguard.Participations(dir)
	require.NoError(t, err)
	require.Empty(t, damaged)
	require.Empty(t, list)
}

func TestADamagedParticipationIsReportedAndHidesNoOther(t *testing.T) {
	list, damaged, err := hostguard.Participations(t.TempDir())
	require.NoError(t, err)
	require.Empty(t, list)
	require.Empty(t, damaged)

	g, dir := active(t, 7)
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	a, err := g.Acknowledge(t.Context(), "op-1", at)
	require.NoError(t, err)
	z, err := g.Acknowledge(t.Context(), "op-9", at)
	require.NoError(t, err)
	acks := filepath.Join(dir, ".participations")
	raw, err := os.ReadFile(filepath.Join(acks, host+"_op-1.json"))
	require.NoError(t, err)
	for name, body := range map[string]string{
		host + "_op-2.json":     "garbage",
		host + "_op-3.json":     string(raw), // another operation's
		"README":                "",
		host + "_op-4.json.tmp": "unfinished",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(acks, name), []byte(body), 0o600))
	}
	list, damaged, err = hostguard.Participations(dir)
	require.NoError(t, err)
	require.Equal(t, []hostguard.Participation{a, z}, list)
	require.Len(t, damaged, 3)

	require.NoError(t, os.RemoveAll(acks))
	require.NoError(t, os.WriteFile(acks, nil, 0o600))
	_, _, err = hostguard.Participations(dir)
	require.Error(t, err, "what cannot be listed is unknown, not empty")
}
