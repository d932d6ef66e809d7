package hostguard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// execState is how a participation stands in its record.
type execState string

const (
	execPending execState = "pending" // the claim may not hold the acknowledgement yet
	execActive  execState = "active"  // it does
	execLost    execState = "lost"    // and the controller's lease was lost since
)

// execRecord is .hostexec/<host>.json: while it is there, the box takes part in
// an operation of the host, and its executable is not replaced.
type execRecord struct {
	header
	Op    string    `json:"op"`
	State execState `json:"state"`

	// Checked: no update was in progress when this record already stood. Until
	// then nothing was acknowledged under it; from then on no update begins
	// while it stands.
	Checked bool `json:"checked"`
}

func (r execRecord) check(g *Guard) error {
	if err := r.header.check(g); err != nil {
		return err
	}
	ok := r.State == execPending || r.Checked && (r.State == execActive || r.State == execLost)
	if err := checkName("op", r.Op, maxOp); err != nil || !ok {
		return fmt.Errorf("%w: op %q, state %q, checked %t", ErrMalformed, r.Op, r.State, r.Checked)
	}
	return nil
}

func execDir(dataDir string) string { return filepath.Join(dataDir, ".hostexec") }

func (g *Guard) execPath() string { return filepath.Join(execDir(g.data), g.host+".json") }

func (g *Guard) exec() (execRecord, bool, error) { return readAt[execRecord](g, g.execPath()) }

func (g *Guard) saveExec(rec *execRecord) error {
	rec.header = rec.next(g)
	return g.disk.save(g.execPath(), *rec)
}

// removeExec removes the record, and what an interrupted write left of one: an
// update is deferred for either.
func (g *Guard) removeExec() error {
	return errors.Join(g.disk.remove(g.execPath()+tmpSuffix), g.disk.remove(g.execPath()))
}

// pend writes op's record as pending, over a predecessor's or over op's own,
// and only then looks for an update: where there is one the record goes again,
// with [ErrUpdating], and a predecessor's, whose end nobody has seen, stands as
// before. A record that passed that look before need not again.
func (g *Guard) pend(ctx context.Context, op string) error {
	return g.locked(ctx, "pending", func(state) error {
		rec, found, err := g.exec()
		switch {
		case err != nil:
			return err
		case found && rec.Op == op && rec.Checked && rec.State == execPending:
			return nil
		case found && rec.Op != op:
			return g.succeed(rec, op)
		}
		checked := found && rec.Checked
		rec.Op, rec.State, rec.Checked = op, execPending, checked
		if err := g.saveExec(&rec); err != nil || checked {
			return err
		}
		if err := g.updating(); err != nil {
			return errors.Join(err, g.removeExec())
		}
		rec.Checked = true
		return g.saveExec(&rec)
	})
}

// succeed is pend over a predecessor's record. It looks for an update first, too,
// so that a crash after one was seen finds the predecessor's record.
func (g *Guard) succeed(before execRecord, op string) error {
	if err := g.updating(); err != nil {
		return err
	}
	rec := before
	rec.Op, rec.State, rec.Checked = op, execPending, false
	if err := g.saveExec(&rec); err != nil {
		return err
	}
	if err := g.updating(); err != nil {
		before.header = rec.header
		return errors.Join(err, g.saveExec(&before))
	}
	rec.Checked = true
	return g.saveExec(&rec)
}

// setExec records a new state of op's participation.
func (g *Guard) setExec(ctx context.Context, op string, to execState) error {
	return g.locked(ctx, string(to), func(state) error {
		rec, found, err := g.exec()
		switch {
		case err != nil:
			return err
		case !found || rec.Op != op || !rec.Checked:
			return fmt.Errorf("%w: the record is of operation %q, want %q", ErrNoController, rec.Op, op)
		case rec.State == to:
			return nil
		}
		rec.State = to
		return g.saveExec(&rec)
	})
}

// clear removes what says that this box takes part in op: the record, unless it
// is validly another operation's, and after it the journal. A record that
// cannot be read stays, and its journal with it.
func (g *Guard) clear(ctx context.Context, op string) error {
	return g.locked(ctx, "clear", func(state) error {
		rec, found, err := g.exec()
		if err != nil {
			return err
		}
		if !found || rec.Op == op {
			if err := g.removeExec(); err != nil {
				return err
			}
		}
		return g.forget(op)
	})
}

// participations lists the operations of the host that this box takes part in,
// by journal and by record. damaged has an error for each entry that cannot be
// read, or is another enrollment's; err means that the list is unknown.
func (g *Guard) participations() (ops []string, damaged []error, err error) {
	entries, err := os.ReadDir(participationsDir(g.data))
	if err != nil {
		return nil, nil, g.errorf("participations: %w", err)
	}
	for _, e := range entries {
		host, op, ok := splitName(e.Name())
		if !ok || host != g.host || strings.HasSuffix(e.Name(), tmpSuffix) {
			continue
		}
		if _, found, err := g.journaled(op); err != nil {
			damaged = append(damaged, g.errorf("participation in %s: %w", op, err))
		} else if found {
			ops = append(ops, op)
		}
	}
	rec, found, err := g.exec()
	if err != nil {
		damaged = append(damaged, g.errorf("execution: %w", err))
	} else if found {
		ops = append(ops, rec.Op)
	}
	return ops, damaged, nil
}
