package console

import (
	"fmt"
	"io"
	"time"

	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/roster"
)

// boxes prints the boxes as of now.
func printBoxes(now time.Time) func(io.Writer, []Box) error {
	return func(w io.Writer, boxes []Box) error {
		if len(boxes) == 0 {
			_, err := fmt.Fprintln(w, "No box is enrolled. Start an agent, then: console box enroll NAME --instance-id ID")
			return err
		}
		rows := [][]string{{"BOX", "REGION", "POOL", "STATE", "INSTANCE", "HOSTS", "HEARD", "STATUS"}}
		waiting := false
		for _, b := range boxes {
			rows = append(rows, []string{b.Ref, orDash(b.Region), orDash(b.Pool), string(b.State), orDash(b.Instance), hostsOf(b), heard(b, now), b.Status})
			waiting = waiting || b.Next != ""
		}
		if err := table(w, rows); err != nil || !waiting {
			return err
		}
		_, err := fmt.Fprintln(w, "\nEnroll a machine that waits with: console box enroll NAME --region CODE --instance-id ID")
		return err
	}
}

func hostsOf(b Box) string {
	if b.State == Waiting {
		return "-"
	}
	return fmt.Sprint(b.Hosts)
}

// heard is the age of what was last heard of a box: its edges file, or of one
// that waits its identity.
func heard(b Box, now time.Time) string {
	if b.HeardAt.IsZero() {
		return "-"
	}
	return hostrecord.Duration(max(now.Sub(b.HeardAt).Round(time.Second), 0)).String() + " ago"
}

// printBox prints all of one box as of now.
func printBox(now time.Time) func(io.Writer, Box) error {
	return func(w io.Writer, b Box) error {
		fmt.Fprintf(w, "%s: %s.\n\n", b.Ref, b.Status)
		rows := [][]string{{"state", string(b.State)}}
		add := func(name, value string) {
			if value != "" {
				rows = append(rows, []string{name, value})
			}
		}
		add("region", b.Region)
		add("pool", b.Pool)
		add("instance", b.Instance)
		add("enrollment", b.Enrollment)
		add("enrolled", timeOf(b.EnrolledAt))
		if b.Draining {
			add("draining", "since an operator said so; it is given no host")
		}
		add("terminated", timeOf(b.TerminatedAt))
		add("declared lost", timeOf(b.DeclaredAt))
		add("readmitted as", b.ReadmittedAs)
		if b.State == Waiting {
			add("published", timeOf(b.HeardAt))
			add("enroll it", b.Next)
			return table(w, rows)
		}
		add("heard", heard(b, now))
		add("address", b.Address)
		if b.Protocol > 0 {
			add("protocol", fmt.Sprintf("%d, this console speaks %d", b.Protocol, roster.Protocol))
		}
		add("hosts", fmt.Sprint(b.Hosts))
		return table(w, rows)
	}
}

func timeOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return clock(t)
}
