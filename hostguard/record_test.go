package hostguard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/record/recordtest"
)

var (
	goldenHeader = header{V: 1, Gen: 4, Write: "8f3c", Host: "notes.demo.example", Box: "box-1", Enrollment: "e-1"}

	goldenState = state{header: goldenHeader, Incarnation: "i-1", Stamp: 12, Fence: "op-1"}

	goldenInstall = installRecord{header: goldenHeader, Done: true, Install: Install{
		Op: "op-1", Stamp: 12, Prepared: "p-1",
		InstallManifest: "instances/notes.demo.example/i-1/db/p-1/install.json", InstallSHA256: "aa",
		FilesManifest: "instances/notes.demo.example/i-1/files/p-1/manifest.json", FilesManifestSHA256: "bb",
	}}

	goldenSession = sessionRecord{header: goldenHeader, Session: Session{
		Generation: "g-1", Number: 12, Incarnation: "i-1", BootID: "boot-1", Step: Ended,
		Final: &Final{Generation: "g-1", TXID: 99, FilesGeneration: "g-1", FilesSeq: 3},
	}}

	goldenRelease = releaseRecord{header: goldenHeader, Released: Released{
		Request: ReleaseRequest{Op: "op-1", Revision: 41, Stamp: 12, Session: 11, Generation: "g-1", Incarnation: "i-1"},
		Final:   Final{Generation: "g-1", TXID: 99, FilesGeneration: "g-1", FilesSeq: 3},
	}}

	goldenExec = execRecord{header: goldenHeader, Op: "op-1", State: execActive, Checked: true}

	goldenMarker = updateMarker{V: 1, Write: "8f3c", At: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), Begun: true}

	goldenParticipation = Participation{V: 1, Host: "notes.demo.example", Op: "op-1", Box: "box-1", Enrollment: "e-1",
		At: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)}
)

func TestGoldenGuard(t *testing.T)   { recordtest.Golden(t, "guard", goldenState) }
func TestGoldenInstall(t *testing.T) { recordtest.Golden(t, "install", goldenInstall) }
func TestGoldenSession(t *testing.T) { recordtest.Golden(t, "session", goldenSession) }
func TestGoldenParticipation(t *testing.T) {
	recordtest.Golden(t, "participation", goldenParticipation)
}

func TestGoldenRelease(t *testing.T) { recordtest.Golden(t, "release", goldenRelease) }
func TestGoldenExec(t *testing.T)    { recordtest.Golden(t, "hostexec", goldenExec) }
func TestGoldenMarker(t *testing.T)  { recordtest.Golden(t, "update-begun", goldenMarker) }

func FuzzRelease(f *testing.F)       { recordtest.Fuzz(f, goldenRelease) }
func FuzzExec(f *testing.F)          { recordtest.Fuzz(f, goldenExec) }
func FuzzMarker(f *testing.F)        { recordtest.Fuzz(f, goldenMarker) }
func FuzzGuard(f *testing.F)         { recordtest.Fuzz(f, goldenState) }
func FuzzInstall(f *testing.F)       { recordtest.Fuzz(f, goldenInstall) }
func FuzzSession(f *testing.F)       { recordtest.Fuzz(f, goldenSession) }
func FuzzParticipation(f *testing.F) { recordtest.Fuzz(f, goldenParticipation) }

func TestASessionThatNoSequenceOfStepsWritesIsMalformed(t *testing.T) {
	require.NoError(t, goldenSession.Session.check())
	for name, spoil := range map[string]func(*Session){
		"no generation":       func(s *Session) { s.Generation = "" },
		"no incarnation":      func(s *Session) { s.Incarnation = "" },
		"no boot":             func(s *Session) { s.BootID = "" },
		"another step":        func(s *Session) { s.Step = "begun" },
		"ended, no number":    func(s *Session) { s.Number = 0 },
		"ended, no final":     func(s *Session) { s.Final = nil },
		"restored with final": func(s *Session) { s.Step = Restored },
		"asked with number":   func(s *Session) { s.Step, s.Final = Asked, nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := goldenSession.Session
			spoil(&s)
			require.ErrorIs(t, s.check(), ErrMalformed)
		})
	}
}

func TestARecordThatNoStepWritesIsMalformed(t *testing.T) {
	g := &Guard{host: goldenHeader.Host, me: Identity{Box: goldenHeader.Box, Enrollment: goldenHeader.Enrollment}}
	require.NoError(t, goldenState.check(g))
	require.NoError(t, goldenInstall.check(g))
	require.NoError(t, goldenSession.check(g))
	for name, spoil := range map[string]func(*state, *installRecord, *sessionRecord){
		"version": func(s *state, i *installRecord, j *sessionRecord) { s.V, i.V, j.V = 2, 2, 2 },
		"gen":     func(s *state, i *installRecord, j *sessionRecord) { s.Gen, i.Gen, j.Gen = 0, 0, 0 },
		"write":   func(s *state, i *installRecord, j *sessionRecord) { s.Write, i.Write, j.Write = "", "", "" },
		"stamp": func(s *state, i *installRecord, j *sessionRecord) {
			s.Stamp, i.Install.Stamp, j.Session.Number = 0, 0, 0
		},
		"name": func(s *state, i *installRecord, j *sessionRecord) {
			s.Incarnation, i.Install.Prepared, j.Session.Generation = "", "", ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, i, j := goldenState, goldenInstall, goldenSession
			spoil(&s, &i, &j)
			require.ErrorIs(t, s.check(g), ErrMalformed)
			require.ErrorIs(t, i.check(g), ErrMalformed)
			require.ErrorIs(t, j.check(g), ErrMalformed)
		})
	}
}

func TestAnExecutionOrReleaseThatNoStepWritesIsMalformed(t *testing.T) {
	g := &Guard{host: goldenHeader.Host, me: Identity{Box: goldenHeader.Box, Enrollment: goldenHeader.Enrollment}}
	require.NoError(t, goldenExec.check(g))
	require.NoError(t, goldenRelease.check(g))
	for name, spoil := range map[string]func(*execRecord){
		"header":              func(r *execRecord) { r.Gen = 0 },
		"op":                  func(r *execRecord) { r.Op = "a/b" },
		"state":               func(r *execRecord) { r.State = "open" },
		"active, not checked": func(r *execRecord) { r.Checked = false },
		"lost, not checked":   func(r *execRecord) { r.State, r.Checked = execLost, false },
	} {
		r := goldenExec
		spoil(&r)
		require.ErrorIs(t, r.check(g), ErrMalformed, name)
	}
	for name, spoil := range map[string]func(*ReleaseRequest){
		"op":          func(r *ReleaseRequest) { r.Op = "" },
		"revision":    func(r *ReleaseRequest) { r.Revision = 0 },
		"stamp":       func(r *ReleaseRequest) { r.Stamp = 0 },
		"incarnation": func(r *ReleaseRequest) { r.Incarnation = "" },
		"session":     func(r *ReleaseRequest) { r.Session = r.Stamp + 1 },
		"generation":  func(r *ReleaseRequest) { r.Generation = "" },
	} {
		r := goldenRelease
		spoil(&r.Released.Request)
		require.ErrorIs(t, r.check(g), ErrMalformed, name)
	}
}

func TestJoinedNamesAreSplitAtOnePlace(t *testing.T) {
	host, op, ok := splitName("a-b.c_d-e.json")
	require.True(t, ok)
	require.Equal(t, [2]string{"a-b.c", "d-e"}, [2]string{host, op})
	for _, bad := range []string{"a.json", "a_b", "_b.json", "a_.json", "a_b_c.json", ".a_b.json", "a_b.json.tmp", "a_b/c.json"} {
		_, _, ok := splitName(bad)
		require.False(t, ok, bad)
	}
}
