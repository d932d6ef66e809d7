package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// event is one operation of one client on one log: an append of a value that no
// other append has, or a read of the whole.
type event struct {
	client    int
	log       string
	call, ret time.Duration // on one clock

	read    bool
	value   string // appended
	unknown bool   // whether it was appended is not known
	saw     string // what was read: every value in order, with a comma behind each
}

// logOf is a log as a list of notes shows it: see event.saw.
func logOf(list []note, log string) string {
	var b strings.Builder
	for _, n := range list {
		if value, ok := strings.CutPrefix(n.ID, log); ok {
			b.WriteString(value + ",")
		}
	}
	return b.String()
}

// checkWithin bounds the check of one history.
const checkWithin = time.Minute

// logs is what a log may do: an append puts its value at the end, a read sees
// exactly what was appended before it. Its state is what a read would see.
var logs = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			log := op.Input.(event).log
			by[log] = append(by[log], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		e := input.(event)
		if e.read {
			return e.saw == state.(string), state
		}
		return true, state.(string) + e.value + ","
	},
}

// checkHistory says what is wrong with a history: it is not linearizable, which
// no lost and no stale write is, or it was too long to tell.
func checkHistory(history []event) error {
	var end time.Duration
	for _, e := range history {
		end = max(end, e.ret)
	}
	var ops []porcupine.Operation
	for _, e := range withoutTheUnseen(history) {
		op := porcupine.Operation{ClientId: e.client, Input: e, Call: int64(e.call), Return: int64(e.ret)}
		if e.unknown {
			op.Return = int64(end) + 1 // it may still happen
		}
		ops = append(ops, op)
	}
	switch porcupine.CheckOperationsTimeout(logs, ops, checkWithin) {
	case porcupine.Illegal:
		return fmt.Errorf("the history of %d operations is not linearizable", len(ops))
	case porcupine.Unknown:
		return fmt.Errorf("the history of %d operations was not checked within %s", len(ops), checkWithin)
	}
	return nil
}

// withoutTheUnseen leaves out the appends of unknown outcome that no read saw:
// each may have happened after the last read, and so never constrains another.
func withoutTheUnseen(history []event) []event {
	seen := map[string]bool{}
	for _, e := range history {
		for value := range strings.SplitSeq(e.saw, ",") {
			seen[e.log+value] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(history), func(e event) bool { return e.unknown && !seen[e.log+e.value] })
}
