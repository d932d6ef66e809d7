package hostrecord

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrInvalid: a field of the record is not what it must be. The message names
// the field, what came and what was expected.
var ErrInvalid = errors.New("invalid host record")

// ErrBadHost: the text is not a host's name.
var ErrBadHost = errors.New("bad host name")

// Bounds of a record, so that no host is larger than what a box will render.
const (
	maxHost    = 200       // bytes of a hostname
	maxArgs    = 256       // arguments of a command
	maxText    = 64 << 10  // bytes of all arguments, and of all of the environment
	maxList    = 64        // timers, aliases
	maxTimeout = time.Hour // start_timeout, stop_timeout
)

var (
	label   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	user    = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	sha256  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	id      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// CheckHost refuses anything but a lower-case DNS name of at most 200 bytes:
// labels of a-z, 0-9 and inner dashes, each of 1 to 63 bytes. A host's name is
// part of object keys and of paths on boxes, so nothing else ever becomes one.
func CheckHost(host string) error {
	if len(host) > maxHost {
		return fmt.Errorf("%w: got %d bytes, want at most %d", ErrBadHost, len(host), maxHost)
	}
	for part := range strings.SplitSeq(host, ".") {
		if !label.MatchString(part) {
			return fmt.Errorf("%w: got %s, want a lower-case DNS name such as notes.example.com", ErrBadHost, quoted(host))
		}
	}
	return nil
}

// Check refuses a record of which any field is not of its form, with
// [ErrInvalid]. It looks at the record alone.
func (r Record) Check() error {
	if r.V != 1 {
		return invalid("v", fmt.Sprint(r.V), "1")
	}
	return errors.Join(r.checkIdentity(), r.checkProgram(), r.checkServing(), r.checkDurability(), r.checkLists())
}

func (r Record) checkIdentity() error {
	return errors.Join(
		checkHost("host", r.Host),
		match("account", r.Account, label, "one lower-case DNS label"),
		match("app", r.App, label, "one lower-case DNS label"),
		match("region", r.Region, label, "a placement code such as ie"),
		match("pool", r.Pool, label, "one lower-case DNS label such as default"),
		match("incarnation", r.Incarnation, id, "the id that the claim's holder has"),
		match("write", r.Write, id, "a nonce"),
		when(r.Gen == 0, "gen", "0", "1 or more"),
		when(r.CreatedAt.IsZero(), "created_at", "nothing", "a time"),
		when(!r.DeletedAt.IsZero() && r.DeletedAt.Before(r.CreatedAt), "deleted_at", r.DeletedAt.String(), "a time after created_at"),
	)
}

func (r Record) checkProgram() error {
	if len(r.Command) == 0 {
		return invalid("command", "nothing", "a program and its arguments, such as [\"/usr/local/bin/notes\"]")
	}
	err := errors.Join(
		when(len(r.Command) > maxArgs, "command", fmt.Sprint(len(r.Command), " arguments"), "at most 256"),
		checkText("command", r.Command),
		r.checkPath(r.Command[0]),
	)
	if r.User != "" {
		err = errors.Join(err, match("user", r.User, user, "a unix user name"))
	}
	if a := r.Artifact; a != (Artifact{}) {
		err = errors.Join(err,
			when(a.Key == "", "artifact.key", "nothing", "an object key"),
			match("artifact.sha256", a.SHA256, sha256, "64 hex digits"),
			when(a.Size <= 0, "artifact.size", fmt.Sprint(a.Size), "a size in bytes"))
	}
	return errors.Join(err, checkEnv(r.Env))
}

// checkPath: a program outside an artifact is named absolutely, since a box
// resolves nothing through its own PATH; one inside may not leave it.
func (r Record) checkPath(program string) error {
	switch {
	case r.Artifact == (Artifact{}):
		return when(!path.IsAbs(program) || path.Clean(program) != program, "command[0]", quoted(program),
			"an absolute path in its shortest form, such as /usr/local/bin/notes")
	case path.IsAbs(program):
		return nil
	}
	return when(program == "" || path.Clean("/"+program) != "/"+program, "command[0]", quoted(program),
		"a path inside the artifact in its shortest form")
}

// checkEnv refuses the names that the platform sets, so that an app can rely
// on them.
func checkEnv(env map[string]string) error {
	var errs []error
	var texts []string
	for name, value := range env {
		texts = append(texts, name, value)
		errs = append(errs,
			match("env", name, envName, "a name of letters, digits and underscores"),
			when(reserved(name), "env", quoted(name), "a name that regionha does not set itself"))
	}
	return errors.Join(append(errs, checkText("env", texts))...)
}

func reserved(name string) bool {
	switch name {
	case "PORT", "LISTEN_SOCKET", "DATABASE_PATH", "FILES_DIR":
		return true
	}
	return strings.HasPrefix(name, "CARLOS_")
}

func (r Record) checkServing() error {
	return errors.Join(
		oneOf("listen", r.Listen, ListenPort, ListenSocket),
		checkURLPath("ready_path", r.ReadyPath),
		between("start_timeout", r.StartTimeout, time.Second, maxTimeout),
		between("stop_timeout", r.StopTimeout, time.Second, maxTimeout),
		between("idle_timeout", r.IdleTimeout, 0, 30*24*time.Hour),
	)
}

func (r Record) checkDurability() error {
	return errors.Join(
		oneOf("files_durability", r.FilesDurability, FilesSnapshot, FilesContinuous),
		between("files_snapshot_interval", r.FilesSnapshotInterval, time.Second, 24*time.Hour),
		oneOf("durability", r.Durability, DurabilityDefault, DurabilityAcked),
		between("max_lag", r.MaxLag, 0, 24*time.Hour),
	)
}

func (r Record) checkLists() error {
	errs := []error{
		when(len(r.Timers) > maxList, "timers", fmt.Sprint(len(r.Timers)), "at most 64"),
		when(len(r.Aliases) > maxList, "aliases", fmt.Sprint(len(r.Aliases)), "at most 64"),
	}
	names := map[string]bool{}
	for _, t := range r.Timers {
		errs = append(errs,
			match("timers.name", t.Name, label, "one lower-case DNS label"),
			when(names[t.Name], "timers.name", quoted(t.Name), "a name only once"),
			when(t.Cron == "", "timers.cron", "nothing", "a cron expression"),
			checkURLPath("timers.path", t.Path))
		names[t.Name] = true
	}
	hosts := map[string]bool{r.Host: true}
	for _, alias := range r.Aliases {
		errs = append(errs, checkHost("aliases", alias), when(hosts[alias], "aliases", quoted(alias), "each hostname only once"))
		hosts[alias] = true
	}
	return errors.Join(errs...)
}

func checkHost(field, host string) error {
	if err := CheckHost(host); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, field, err)
	}
	return nil
}

func checkURLPath(field, p string) error {
	u, err := url.ParseRequestURI(p)
	bad := err != nil || !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || u.IsAbs()
	return when(bad, field, quoted(p), "a URL path such as /healthz")
}

func checkText(field string, texts []string) error {
	size := 0
	for _, s := range texts {
		size += len(s)
		if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
			return invalid(field, quoted(s), "UTF-8 text without a NUL byte")
		}
	}
	return when(size > maxText, field, fmt.Sprint(size, " bytes"), "at most 65536 bytes in all")
}

func between(field string, d Duration, low, high time.Duration) error {
	return when(d.Std() < low || d.Std() > high, field, d.String(), fmt.Sprintf("%s to %s", Duration(low), Duration(high)))
}

func oneOf(field, got string, allowed ...string) error {
	for _, a := range allowed {
		if got == a {
			return nil
		}
	}
	return invalid(field, quoted(got), strings.Join(allowed, " or "))
}

func match(field, got string, form *regexp.Regexp, want string) error {
	return when(!form.MatchString(got), field, quoted(got), want)
}

func when(bad bool, field, got, want string) error {
	if !bad {
		return nil
	}
	return invalid(field, got, want)
}

func invalid(field, got, want string) error {
	return fmt.Errorf("%w: %s: got %s, want %s", ErrInvalid, field, got, want)
}

// quoted shows a value that came in, cut to what a person will read.
func quoted(s string) string {
	if s == "" {
		return "nothing"
	}
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return fmt.Sprintf("%q", s)
}
