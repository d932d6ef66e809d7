package runner

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
)

// environ is the whole environment of a run that listens at l, sorted.
func (c Config) environ(l listener) []string {
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": c.workDir(),
		"LANG": "C.UTF-8",
		"TZ":   "UTC",
	}
	maps.Copy(env, c.Env)
	env["DATABASE_PATH"] = c.Database
	env["FILES_DIR"] = c.Files
	env["CARLOS_INSTANCE_KEY"] = base64.URLEncoding.EncodeToString(c.InstanceKey)
	env["CARLOS_REGION"] = c.Region
	env[envHost] = c.Host
	env[envSession] = strconv.FormatUint(c.Session, 10)
	env[l.env] = l.value

	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// The two variables by which a process whose group leader is gone is still
// known to be of a recorded run.
const (
	envHost    = "CARLOS_HOST"
	envSession = "CARLOS_SESSION"
)
