package hostguard

import (
	"errors"

	"github.com/carlosframework/regionha/internal/record"
)

// Sentinels, by what the caller does next. Wrapped errors satisfy errors.Is.
var (
	// ErrForeign: the local state belongs to another box or enrollment. Hold
	// it and alert; a person retires it.
	ErrForeign = errors.New("local state of another enrollment")

	// ErrStale: another installation is the active one, or none is. Read the
	// claim again.
	ErrStale = errors.New("not the active installation")

	// ErrFenced: admission has ended for this installation. Start nothing.
	ErrFenced = errors.New("admission is fenced")

	// ErrNotFenced: a step of a release ran before its fence. Begin it first.
	ErrNotFenced = errors.New("admission is not fenced")

	// ErrNoInstall: this box holds no finished local install of that plan.
	// Make it, or make it again.
	ErrNoInstall = errors.New("not installed here")

	// ErrSession: the journaled session does not allow that. End what runs and
	// ask for a new admission.
	ErrSession = errors.New("not this box's open session")

	// ErrNoController: the operation's execution controller is not open, or its
	// lease is lost. Do nothing for the operation until Enter has opened it.
	ErrNoController = errors.New("no open execution controller")

	// ErrUpdating: the agent's executable is being updated. Nothing was
	// acknowledged; enter again later.
	ErrUpdating = errors.New("an update of the agent is in progress")

	// ErrDeferred: the update may not begin now. Try again later.
	ErrDeferred = errors.New("update deferred")

	// ErrLocked: another process holds the data directory.
	ErrLocked = errors.New("data directory in use")

	// ErrMalformed: a record is damaged, or of another version. Nothing
	// repairs it; alert.
	ErrMalformed = record.ErrMalformed
)
