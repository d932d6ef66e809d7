package hostrecord

import (
	"time"
)

// Record is the host's record, version 1. The zero value of a field is
// omitted from what is stored; [Record.WithDefaults] fills in what a create
// leaves open.
type Record struct {
	V     int    `json:"v"`     // 1
	Gen   uint64 `json:"gen"`   // +1 in every write, from 1
	Write string `json:"write"` // nonce of the last write

	Host    string `json:"host"`    // the hostname it is served under, see CheckHost
	Account string `json:"account"` // who owns it: one DNS label
	App     string `json:"app"`     // which app it is an instance of: one DNS label
	Region  string `json:"region"`  // placement code: one DNS label
	Pool    string `json:"pool"`    // which boxes of the region may run it: one DNS label

	// Command is the program and its arguments. Command[0] is absolute, or lies
	// inside the unpacked Artifact.
	Command  []string          `json:"command,omitempty"`
	Artifact Artifact          `json:"artifact"`
	User     string            `json:"user"` // unix user, "" for the agent's own
	Env      map[string]string `json:"env,omitempty"`

	Listen       string   `json:"listen"`        // how the app is told where to listen: ListenPort or ListenSocket
	ReadyPath    string   `json:"ready_path"`    // GET it, 200 means ready
	StartTimeout Duration `json:"start_timeout"` // from spawn to ready
	StopTimeout  Duration `json:"stop_timeout"`  // from TERM to KILL

	FilesDurability       string   `json:"files_durability"`        // FilesSnapshot or FilesContinuous
	FilesSnapshotInterval Duration `json:"files_snapshot_interval"` // between snapshots
	Durability            string   `json:"durability"`              // DurabilityDefault or DurabilityAcked
	IdleTimeout           Duration `json:"idle_timeout"`            // stop an idle host after; 0: always on

	Timers  []Timer  `json:"timers,omitempty"`
	Aliases []string `json:"aliases,omitempty"` // further hostnames of the same host

	Incarnation string    `json:"incarnation"` // of the claim that this record belongs to
	CreatedAt   time.Time `json:"created_at"`
	DeletedAt   time.Time `json:"deleted_at"` // zero: not deleted
	MaxLag      Duration  `json:"max_lag"`    // refuse writes once the store is this far behind; 0: never
}

// Values of [Record.Listen].
const (
	ListenPort   = "port"   // PORT holds a free loopback port
	ListenSocket = "socket" // LISTEN_SOCKET holds the path of a unix socket
)

// Values of [Record.FilesDurability].
const (
	FilesSnapshot   = "snapshot"   // published every FilesSnapshotInterval
	FilesContinuous = "continuous" // published as they change
)

// Values of [Record.Durability].
const (
	DurabilityDefault = "default" // a failover may lose about the last second, declared
	DurabilityAcked   = "acked"   // a response waits until its writes are in the store
)

// Artifact is the archive of the app's program. The zero value means that the
// operator installed the program on every box.
type Artifact struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
}

// Timer is one scheduled delivery: a POST of Path when Cron says so.
type Timer struct {
	Name string `json:"name"`
	Cron string `json:"cron"`
	Path string `json:"path"`
}

// Duration is stored in its shortest text, such as "30s" or "1h30m".
type Duration time.Duration

// Std is d as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String is the text that is stored.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if n := len(s); n > 3 && s[n-3:] == "m0s" {
		s = s[:n-2]
	}
	if n := len(s); n > 3 && s[n-3:] == "h0m" {
		s = s[:n-2]
	}
	return s
}

// MarshalText writes [Duration.String].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	std, err := time.ParseDuration(string(b))
	if err != nil {
		return err
	}
	*d = Duration(std)
	return nil
}

// WithDefaults returns r with every setting that a create may leave open
// filled in. It does not touch what is already set, nor the two for which zero
// is a choice: IdleTimeout and MaxLag.
func (r Record) WithDefaults() Record {
	r.V = 1
	setZero(&r.Pool, "default")
	setZero(&r.Listen, ListenPort)
	setZero(&r.ReadyPath, "/healthz")
	setZero(&r.StartTimeout, Duration(30*time.Second))
	setZero(&r.StopTimeout, Duration(10*time.Second))
	setZero(&r.FilesDurability, FilesSnapshot)
	setZero(&r.FilesSnapshotInterval, Duration(15*time.Minute))
	setZero(&r.Durability, DurabilityDefault)
	return r
}

func setZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
