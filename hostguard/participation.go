package hostguard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Participation is the journal of one acknowledgement: this box takes part in
// an operation. It is what the claim's exec_ack says, and never changes.
type Participation struct {
	V          int       `json:"v"`
	Host       string    `json:"host"`
	Op         string    `json:"op"`
	Box        string    `json:"box"`
	Enrollment string    `json:"enrollment"`
	At         time.Time `json:"at"`
}

func participationsDir(dataDir string) string { return filepath.Join(dataDir, ".participations") }

// Acknowledge journals that this box takes part in op, before the claim is told
// so, and returns what the journal says: the first acknowledgement, whoever asks
// again. The context bounds the wait for the host's lock.
func (g *Guard) Acknowledge(ctx context.Context, op string, at time.Time) (Participation, error) {
	if err := checkName("op", op, maxOp); err != nil {
		return Participation{}, g.errorf("acknowledge: %w", err)
	}
	var p Participation
	err := g.locked(ctx, "acknowledge", func(state) (err error) {
		var found bool
		if p, found, err = g.journaled(op); err != nil || found {
			return err
		}
		p = Participation{V: version, Host: g.host, Op: op, Box: g.me.Box, Enrollment: g.me.Enrollment, At: at.UTC()}
		return g.disk.save(g.participation(op), p)
	})
	if err != nil {
		return Participation{}, err
	}
	return p, nil
}

// Forget removes the journal of a participation. Call it only after a fresh
// claim read showed that this box takes no part in op any more, and after its
// clean-up. One that is not there is forgotten; one that cannot be read, that is
// another enrollment's, or whose execution record exists, stays.
func (g *Guard) Forget(ctx context.Context, op string) error {
	if err := checkName("op", op, maxOp); err != nil {
		return g.errorf("forget: %w", err)
	}
	return g.locked(ctx, "forget", func(state) error { return g.forget(op) })
}

// forget refuses while the participation's record exists, or may.
func (g *Guard) forget(op string) error {
	rec, found, err := g.exec()
	if err == nil && found && rec.Op == op {
		err = fmt.Errorf("the record of operation %s still exists", op)
	}
	if err == nil {
		_, _, err = g.journaled(op)
	}
	if err != nil {
		return err
	}
	return g.disk.remove(g.participation(op))
}

// journaled reads this box's own participation in op.
func (g *Guard) journaled(op string) (Participation, bool, error) {
	path := g.participation(op)
	p, found, err := loadParticipation(path, g.host, op)
	if found && (p.Box != g.me.Box || p.Enrollment != g.me.Enrollment) {
		err = fmt.Errorf("%s: %w: box %q, enrollment %q", path, ErrForeign, p.Box, p.Enrollment)
	}
	return p, found, err
}

func (g *Guard) participation(op string) string {
	return filepath.Join(participationsDir(g.data), g.host+"_"+op+".json")
}

// Participations reads every journaled participation under dataDir. damaged has
// one error for each entry that cannot be read; it hides no other, and a file
// that a write left unfinished is none. err means that the list is unknown.
func Participations(dataDir string) (list []Participation, damaged []error, err error) {
	dir := participationsDir(dataDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("hostguard: participations: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), tmpSuffix) {
			continue
		}
		host, op, ok := splitName(e.Name())
		if !ok {
			damaged = append(damaged, fmt.Errorf("hostguard: participations: %q is not <host>_<op>.json", e.Name()))
			continue
		}
		p, found, err := loadParticipation(filepath.Join(dir, e.Name()), host, op)
		if err != nil {
			damaged = append(damaged, fmt.Errorf("hostguard: participations: %w", err))
		} else if found {
			list = append(list, p)
		}
	}
	return list, damaged, nil
}

// Participants lists, once each and in order, the hosts of which a journal or an
// execution record says that this box takes part in an operation: what has to be
// ended for them an earlier process may have left. damaged and err are those of
// [Participations]; a record that cannot be read names its host all the same.
func Participants(dataDir string) (hosts []string, damaged []error, err error) {
	list, damaged, err := Participations(dataDir)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range list {
		hosts = append(hosts, p.Host)
	}
	entries, err := os.ReadDir(execDir(dataDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("hostguard: execution records: %w", err)
	}
	for _, e := range entries {
		if host, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), damaged, nil
}

func loadParticipation(path, host, op string) (Participation, bool, error) {
	p, found, err := load[Participation](path)
	if err != nil || !found {
		return Participation{}, false, err
	}
	if p.V != version || p.Host != host || p.Op != op || p.Box == "" || p.Enrollment == "" || p.At.IsZero() {
		return Participation{}, false, fmt.Errorf("%s: %w: version %d, host %q, op %q, box %q, enrollment %q, at %s",
			path, ErrMalformed, p.V, p.Host, p.Op, p.Box, p.Enrollment, p.At)
	}
	return p, true, nil
}
