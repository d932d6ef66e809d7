package hostrecord_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/record/recordtest"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

func minimal() hostrecord.Record {
	return hostrecord.Record{
		Gen: 1, Write: "w1", Host: "notes.demo.example", Account: "demo", App: "notes", Region: "ie",
		Command: []string{"/usr/local/bin/notes", "-v"}, Incarnation: "i1",
		CreatedAt: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC),
	}.WithDefaults()
}

func full() hostrecord.Record {
	r := minimal()
	r.Command = []string{"bin/notes"}
	r.Artifact = hostrecord.Artifact{Key: "apps/demo/notes/artifacts/x", SHA256: strings.Repeat("0f", 32), Size: 123}
	r.User = "notes"
	r.Env = map[string]string{"LOG_LEVEL": "info", "A": ""}
	r.IdleTimeout = hostrecord.Duration(90 * time.Minute)
	r.MaxLag = hostrecord.Duration(time.Minute)
	r.Timers = []hostrecord.Timer{{Name: "nightly", Cron: "0 3 * * *", Path: "/tasks/nightly"}}
	r.Aliases = []string{"www.example"}
	r.DeletedAt = r.CreatedAt.Add(time.Hour)
	return r
}

func TestGolden(t *testing.T) {
	recordtest.Golden(t, "minimal", minimal())
	recordtest.Golden(t, "full", full())
}

func FuzzDecode(f *testing.F) { recordtest.Fuzz(f, minimal(), full()) }

func TestDefaultsPass(t *testing.T) {
	require.NoError(t, minimal().Check())
	require.NoError(t, full().Check())
}

func TestEachBadFieldIsNamedWithWhatCameAndWhatWasExpected(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, row := range []struct {
		name   string
		change func(*hostrecord.Record)
		want   []string
	}{
		{"version", func(r *hostrecord.Record) { r.V = 2 }, []string{"v: got 2, want 1"}},
		{"no gen", func(r *hostrecord.Record) { r.Gen = 0 }, []string{"gen: got 0"}},
		{"no nonce", func(r *hostrecord.Record) { r.Write = "" }, []string{"write: got nothing"}},
		{"host in capitals", func(r *hostrecord.Record) { r.Host = "Notes.example" }, []string{"host:", `"Notes.example"`, "lower-case DNS name"}},
		{"host with a slash", func(r *hostrecord.Record) { r.Host = "a/b" }, []string{"host:", `"a/b"`}},
		{"account climbs", func(r *hostrecord.Record) { r.Account = ".." }, []string{`account: got ".."`}},
		{"no app", func(r *hostrecord.Record) { r.App = "" }, []string{"app: got nothing"}},
		{"region", func(r *hostrecord.Record) { r.Region = "eu west" }, []string{`region: got "eu west"`}},
		{"pool", func(r *hostrecord.Record) { r.Pool = long }, []string{"pool: got"}},
		{"no incarnation", func(r *hostrecord.Record) { r.Incarnation = "" }, []string{"incarnation: got nothing"}},
		{"incarnation climbs", func(r *hostrecord.Record) { r.Incarnation = "../x" }, []string{"incarnation: got"}},
		{"no time", func(r *hostrecord.Record) { r.CreatedAt = time.Time{} }, []string{"created_at: got nothing"}},
		{"deleted before created", func(r *hostrecord.Record) { r.DeletedAt = r.CreatedAt.Add(-1) }, []string{"deleted_at:"}},
		{"no command", func(r *hostrecord.Record) { r.Command = nil }, []string{"command: got nothing", "a program and its arguments"}},
		{"relative command", func(r *hostrecord.Record) { r.Command[0] = "notes" }, []string{`command[0]: got "notes"`, "absolute path"}},
		{"command with dots", func(r *hostrecord.Record) { r.Command[0] = "/usr/../bin/notes" }, []string{"command[0]: got"}},
		{"command leaves the artifact", func(r *hostrecord.Record) {
			r.Artifact = full().Artifact
			r.Command[0] = "../notes"
		}, []string{"command[0]: got", "inside the artifact"}},
		{"NUL in an argument", func(r *hostrecord.Record) { r.Command[1] = "a\x00b" }, []string{"command: got", "NUL"}},
		{"too many arguments", func(r *hostrecord.Record) { r.Command = append(r.Command, make([]string, 256)...) }, []string{"command: got 258 arguments"}},
		{"too much text", func(r *hostrecord.Record) { r.Command[1] = strings.Repeat("a", 64<<10) }, []string{"command: got", "65536"}},
		{"artifact without a digest", func(r *hostrecord.Record) { r.Artifact.Key = "k"; r.Artifact.Size = 1 }, []string{"artifact.sha256: got nothing"}},
		{"artifact without a key", func(r *hostrecord.Record) { r.Artifact = full().Artifact; r.Artifact.Key = "" }, []string{"artifact.key: got nothing"}},
		{"artifact without a size", func(r *hostrecord.Record) { r.Artifact = full().Artifact; r.Artifact.Size = 0 }, []string{"artifact.size: got 0"}},
		{"user", func(r *hostrecord.Record) { r.User = "root; rm" }, []string{`user: got "root; rm"`}},
		{"env name", func(r *hostrecord.Record) { r.Env = map[string]string{"A=B": ""} }, []string{`env: got "A=B"`}},
		{"env value", func(r *hostrecord.Record) { r.Env = map[string]string{"A": "\x00"} }, []string{"env: got", "NUL"}},
		{"reserved env", func(r *hostrecord.Record) { r.Env = map[string]string{"DATABASE_PATH": "/x"} }, []string{`env: got "DATABASE_PATH"`, "does not set itself"}},
		{"reserved prefix", func(r *hostrecord.Record) { r.Env = map[string]string{"CARLOS_HOST": "x"} }, []string{`env: got "CARLOS_HOST"`}},
		{"listen", func(r *hostrecord.Record) { r.Listen = "tcp" }, []string{`listen: got "tcp", want port or socket`}},
		{"ready path", func(r *hostrecord.Record) { r.ReadyPath = "healthz" }, []string{`ready_path: got "healthz"`}},
		{"ready path is a URL", func(r *hostrecord.Record) { r.ReadyPath = "http://elsewhere/" }, []string{"ready_path: got"}},
		{"ready path names a host", func(r *hostrecord.Record) { r.ReadyPath = "//elsewhere/" }, []string{"ready_path: got"}},
		{"no start timeout", func(r *hostrecord.Record) { r.StartTimeout = 0 }, []string{"start_timeout: got 0s, want 1s to 1h"}},
		{"stop timeout", func(r *hostrecord.Record) { r.StopTimeout = hostrecord.Duration(2 * time.Hour) }, []string{"stop_timeout: got 2h"}},
		{"idle timeout", func(r *hostrecord.Record) { r.IdleTimeout = -1 }, []string{"idle_timeout: got -1ns"}},
		{"files durability", func(r *hostrecord.Record) { r.FilesDurability = "none" }, []string{"files_durability: got"}},
		{"snapshot interval", func(r *hostrecord.Record) { r.FilesSnapshotInterval = 0 }, []string{"files_snapshot_interval: got 0s"}},
		{"durability", func(r *hostrecord.Record) { r.Durability = "high" }, []string{"durability: got"}},
		{"max lag", func(r *hostrecord.Record) { r.MaxLag = -1 }, []string{"max_lag: got"}},
		{"timer name", func(r *hostrecord.Record) { r.Timers = []hostrecord.Timer{{Cron: "* * * * *", Path: "/"}} }, []string{"timers.name: got nothing"}},
		{"timer cron", func(r *hostrecord.Record) { r.Timers = []hostrecord.Timer{{Name: "a", Path: "/"}} }, []string{"timers.cron: got nothing"}},
		{"timer path", func(r *hostrecord.Record) { r.Timers = []hostrecord.Timer{{Name: "a", Cron: "x"}} }, []string{"timers.path: got nothing"}},
		{"timer twice", func(r *hostrecord.Record) {
			a := hostrecord.Timer{Name: "a", Cron: "x", Path: "/"}
			r.Timers = []hostrecord.Timer{a, a}
		}, []string{`timers.name: got "a"`, "only once"}},
		{"too many timers", func(r *hostrecord.Record) { r.Timers = make([]hostrecord.Timer, 65) }, []string{"timers: got 65"}},
		{"alias", func(r *hostrecord.Record) { r.Aliases = []string{"A"} }, []string{"aliases: bad host name"}},
		{"alias twice", func(r *hostrecord.Record) { r.Aliases = []string{r.Host} }, []string{"aliases: got", "only once"}},
		{"too many aliases", func(r *hostrecord.Record) { r.Aliases = make([]string, 65) }, []string{"aliases: got 65"}},
		{"two fields", func(r *hostrecord.Record) { r.App = "A"; r.Listen = "x" }, []string{"app: got", "listen: got"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := memstore.New()
			r := minimal()
			row.change(&r)
			_, err := hostrecord.Create(t.Context(), s, r)
			require.ErrorIs(t, err, hostrecord.ErrInvalid)
			for _, want := range row.want {
				require.ErrorContains(t, err, want)
			}
			for range s.List(t.Context(), "") {
				t.Fatal("something was written")
			}
		})
	}
}

func TestCheckHost(t *testing.T) {
	at200 := strings.Repeat("a.", 99) + "aa"
	for _, good := range []string{"a", "notes.demo.example", "xn--bcher-kva.example", "0.a", at200} {
		require.NoError(t, hostrecord.CheckHost(good), good)
	}
	for _, bad := range []string{"", ".", "a.", ".a", "a..b", "A.example", "a_b", "-a", "a-", "a b", "../a", "ü.example",
		"a:80", strings.Repeat("a", 64), at200 + "a", "a\n"} {
		require.ErrorIs(t, hostrecord.CheckHost(bad), hostrecord.ErrBadHost, bad)
	}
}

func TestDurationsAreStoredInTheirShortestText(t *testing.T) {
	for text, d := range map[string]time.Duration{"0s": 0, "30s": 30 * time.Second, "1m": time.Minute, "15m": 15 * time.Minute,
		"1h": time.Hour, "1h30m": 90 * time.Minute, "1h0m1s": time.Hour + time.Second, "10m": 10 * time.Minute,
		"10h": 10 * time.Hour, "1m10s": 70 * time.Second, "150ms": 150 * time.Millisecond} {
		require.Equal(t, text, hostrecord.Duration(d).String())
		var back hostrecord.Duration
		require.NoError(t, back.UnmarshalText([]byte(text)))
		require.Equal(t, d, back.Std())
	}
}

func TestReadIsStrict(t *testing.T) {
	r := minimal()
	good, _, err := hostrecord.Encode(r)
	require.NoError(t, err)
	bad := minimal()
	bad.Command = nil
	unchecked, err := record.Encode(bad)
	require.NoError(t, err)
	for _, row := range []struct {
		name, body string
		want       error
	}{
		{"unknown field", strings.Replace(string(good), `{"v":1,`, `{"v":1,"x":1,`, 1), record.ErrMalformed},
		{"longer duration", strings.Replace(string(good), `"15m"`, `"15m0s"`, 1), record.ErrMalformed},
		{"missing command", string(unchecked), hostrecord.ErrInvalid},
		{"another host's", strings.Replace(string(good), "notes.demo", "other.demo", 1), hostrecord.ErrInvalid},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := memstore.New()
			_, err := s.Put(t.Context(), hostrecord.Key("demo", "notes", r.Host), []byte(row.body), objstore.IfAbsent())
			require.NoError(t, err)
			_, err = hostrecord.Read(t.Context(), s, "demo", "notes", r.Host)
			require.ErrorIs(t, err, row.want)
		})
	}
	_, err = hostrecord.Read(t.Context(), memstore.New(), "demo", "notes", r.Host)
	require.ErrorIs(t, err, objstore.ErrNotFound)
}

func TestCreateIsCreateOnlyAndReplaceIsOverExactlyOne(t *testing.T) {
	s := memstore.New()
	first, err := hostrecord.Create(t.Context(), s, minimal())
	require.NoError(t, err)
	again, err := hostrecord.Create(t.Context(), s, minimal())
	require.NoError(t, err, "the same bytes are the same record")
	require.Equal(t, first.SHA256, again.SHA256)

	other := minimal()
	other.Write = "w2"
	_, err = hostrecord.Create(t.Context(), s, other)
	require.ErrorIs(t, err, objstore.ErrConflict)

	_, err = hostrecord.Replace(t.Context(), s, first, other)
	require.ErrorContains(t, err, "gen: got 1, want 2")
	other.Gen = 2
	moved := other
	moved.Host = "other.example"
	_, err = hostrecord.Replace(t.Context(), s, first, moved)
	require.ErrorIs(t, err, hostrecord.ErrInvalid)
	second, err := hostrecord.Replace(t.Context(), s, first, other)
	require.NoError(t, err)

	stale := other
	stale.Write = "w3"
	_, err = hostrecord.Replace(t.Context(), s, first, stale)
	require.ErrorIs(t, err, objstore.ErrConflict)
	got, err := hostrecord.Read(t.Context(), s, "demo", "notes", other.Host)
	require.NoError(t, err)
	require.Equal(t, second, got)
}
