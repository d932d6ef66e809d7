package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// print says how the moves went: each in a line, the last phase by phase.
func (m moves) print(t *teller) {
	if m.skipped != "" {
		t.say("no drain: %s", m.skipped)
		return
	}
	var b strings.Builder
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if n := len(m.each); n > 0 {
		fmt.Fprintln(w, "phase\tat\ttook\tkind\t")
		last := m.each[n-1]
		for i, s := range last.steps() {
			since := "-"
			if i > 0 {
				since = seconds(took(last, i))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.name, seconds(s.at.Sub(last.started)), since, s.kind, s.what)
		}
		w.Flush()
		b.WriteString("\n")
	}
	for _, one := range m.each {
		fmt.Fprintf(&b, "%s\n", one)
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("drains", "%d; agents killed meanwhile: %d", len(m.each), m.kills)
	row("unavailable for", "%s at the median, %s at most", seconds(m.median(func(m move) time.Duration { return m.gap })), seconds(m.unavailable))
	row("writes acknowledged", "%d", len(m.notes))
	row("lost", "%d", m.lostUndeclared)
	row("uploads acknowledged", "%d", len(m.uploads))
	row("errors seen by clients", "%d", len(m.errors))
	row("writers at one time", "%d", m.writers)
	if m.recorded > 0 {
		row("recorded and checked", "%d operations of %d clients", m.recorded, recorders)
	}
	row("an agent's peak memory", "%d MB", m.peak>>20)
	w.Flush()
	printBroken(&b, m.broken)
	t.print(b.String())
}

// drainResult is the part of -json about the moves. Times are of the median move
// where there were several, but for the longest of all.
type drainResult struct {
	UnavailableMS       int64            `json:"unavailable_ms"` // the longest
	UnavailableMedianMS int64            `json:"unavailable_median_ms"`
	Acked               int              `json:"acked"`
	Lost                int              `json:"lost"`
	Errors              int              `json:"errors_seen_by_clients"`
	MaxWriters          int              `json:"max_writers"`
	Drains              int              `json:"drains"`
	Kills               int              `json:"kills"`
	Recorded            int              `json:"recorded"`
	StepsMS             map[string]int64 `json:"steps_ms"`
	AgentPeakBytes      int64            `json:"agent_peak_bytes"`
}

func (m moves) result() *drainResult {
	if m.skipped != "" {
		return nil
	}
	r := &drainResult{
		UnavailableMS:       m.unavailable.Milliseconds(),
		UnavailableMedianMS: m.median(func(m move) time.Duration { return m.gap }).Milliseconds(),
		Acked:               len(m.notes), Lost: m.lostUndeclared, Errors: len(m.errors), MaxWriters: m.writers,
		Drains: len(m.each), Kills: m.kills, Recorded: m.recorded, AgentPeakBytes: m.peak, StepsMS: map[string]int64{},
	}
	for i, s := range (move{}).steps()[1:] {
		r.StepsMS[strings.ReplaceAll(s.name, " ", "_")] = m.median(func(m move) time.Duration { return took(m, i+1) }).Milliseconds()
	}
	return r
}
