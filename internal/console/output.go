package console

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore/storetest"
)

// show prints v as -o asks: as the API's JSON, or by print.
func show[T any](w io.Writer, o output, v T, print func(io.Writer, T) error) error {
	if o.Output == "json" {
		return printJSON(w, v)
	}
	return print(w, v)
}

// output is -o of every command that reads.
type output struct {
	Output string `short:"o" help:"Print text, or json as the API gives it." enum:"text,json" default:"text" env:"-"`
}

// encode writes v as the API gives it: as stored records are, so what is zero
// is absent, and indented.
func encode(v any) ([]byte, error) {
	body, err := record.Encode(v)
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(body)
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(value, '\n'), nil
}

func printJSON(w io.Writer, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	_, err = w.Write(body)
	return err
}

// table prints rows in columns.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

func printHosts(w io.Writer, hosts []Host) error {
	if len(hosts) == 0 {
		_, err := fmt.Fprintln(w, "There is no host. Create one with: console host create NAME")
		return err
	}
	rows := [][]string{{"HOST", "STATE", "BOX", "WHAT IS GOING ON"}}
	for _, h := range hosts {
		rows = append(rows, []string{h.Host, orDash(string(h.State)), orDash(h.Box), h.Status.Sentence()})
	}
	return table(w, rows)
}

func printHost(w io.Writer, h Host) error {
	fmt.Fprintf(w, "%s is %s.\n", h.Host, h.Status.Sentence())
	if h.Problem != "" {
		fmt.Fprintf(w, "Problem: %s\n", h.Problem)
	}
	fmt.Fprintln(w)
	rows := [][]string{{"state", stateOf(h)}, {"box", orDash(h.Box)}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("address", h.Address)
	add("region", h.Region)
	if holder := h.Claim.Holder; holder != nil {
		add("app", holder.Account+"/"+holder.App)
		add("created", clock(holder.CreatedAt))
		add("data", holder.Location)
		add("generation", holder.Generation)
		add("writer", writerOf(holder))
	}
	add("claim", fmt.Sprintf("gen %d, operation %s by %s since %s", h.Claim.Gen, orDash(h.Claim.Op.ID), orDash(h.Claim.Op.By), clock(h.Claim.Op.StartedAt)))
	if h.Record != nil {
		add("command", strings.Join(h.Record.Command, " "))
		add("ready", "GET "+h.Record.ReadyPath)
	}
	add("lost boxes", strings.Join(h.Claim.Lost, ", "))
	for _, loss := range losses(h.Claim) {
		add("declared loss", loss)
	}
	for _, o := range h.Claim.Obligations {
		add("owed", fmt.Sprintf("%s by %s %s", o.Kind, o.Owner, o.Generation))
	}
	return table(w, rows)
}

func stateOf(h Host) string {
	if phase := h.Claim.Op.Phase; phase != "" {
		return string(h.State) + ", " + string(phase)
	}
	return string(h.State)
}

func writerOf(h *hostclaim.Holder) string {
	if h.Session == 0 {
		return "none yet"
	}
	return fmt.Sprintf("session %d on %s, stamp %d", h.Session, h.WriterBox, h.Stamp)
}

// losses says what each kept admission declared lost.
func losses(claim *hostclaim.Claim) []string {
	if claim.Holder == nil {
		return nil
	}
	var lines []string
	for _, a := range claim.Holder.Admissions {
		if l := a.WritesLost; l != nil {
			lines = append(lines, fmt.Sprintf("session %d on %s: whatever it wrote after transaction %d of %s", l.Session, l.Box, l.RemoteMaxTXID, l.Generation))
		}
	}
	return lines
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// checkResult is one line of store check.
type checkResult struct {
	Name    string `json:"name"`
	Need    string `json:"need"`   // required or note
	Result  string `json:"result"` // ok, failed, note or skipped
	Error   string `json:"error,omitempty"`
	Meaning string `json:"meaning,omitempty"` // what would go wrong
	Took    string `json:"took"`
}

func viewResult(r storetest.Result) checkResult {
	v := checkResult{Name: r.Name, Need: string(r.Need), Result: "ok", Took: hostrecord.Duration(r.Took.Round(time.Millisecond)).String()}
	switch {
	case r.Skipped:
		v.Result = "skipped"
	case r.Err != nil && r.Need == storetest.Note:
		v.Result = "note"
	case r.Err != nil:
		v.Result = "failed"
	}
	if r.Err != nil {
		v.Error, v.Meaning = r.Err.Error(), r.Why
	}
	return v
}

func printResult(w io.Writer, r storetest.Result) {
	v := viewResult(r)
	fmt.Fprintf(w, "%-8s %-7s %s\n", v.Result, v.Took, v.Name)
	if v.Error != "" {
		fmt.Fprintf(w, "         %s\n         on such a store: %s\n", v.Error, v.Meaning)
	}
}
