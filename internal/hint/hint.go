// Package hint is how one process of a deployment tells others to look now: at
// a host whose claim moved, at a home that moved, or at a box that does not
// answer, ends, or is to be emptied.
//
// A hint is one small signed POST to a peer's internal listener, and one entry
// in the next bump of the region's file for those that it does not reach. It
// carries no authority: the receiver reads the claim, the edges files, the
// roster or the cloud itself, and a lost hint costs one poll.
//
// However many hints there are, a [Sender] bumps the region's file at most once
// a second, for all hosts of that second together: a GET and a PUT, which
// contend with those of every other process.
package hint

import (
	"io"
	"net/http"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/record"
)

// Path is where a process takes hints, on its internal listener.
const Path = "/v1/hint"

const maxBody = 4 << 10

// Hint says where to look.
type Hint struct {
	V    int    `json:"v"`    // 1
	Host string `json:"host"` // whose claim, or home, moved
	Gen  uint64 `json:"gen"`  // of the claim; 0: its home moved
	Box  string `json:"box"`  // a box to be looked at now: in the roster and in the cloud
}

// Outgoing is a hint with the boxes that it is for; none: every peer.
type Outgoing struct {
	Hint
	To    []string
	Quiet bool // nobody else has to know: the region's file is not bumped
}

// Of is what others are told of a claim that was just written: its executor, and
// those that take part. Nobody else has to know of a step that they make among
// themselves: only of one that names a box anew, hands over, waits for a person
// or ends.
func Of(c *hostclaim.Claim) Outgoing {
	op := c.Op
	o := Outgoing{Hint: Hint{Host: c.Host, Gen: c.Gen}, To: append([]string{}, op.Participants...)}
	if op.Exec != "" && op.Exec != hostclaim.None {
		o.To = append(o.To, op.Exec)
	}
	if op.Kind != hostclaim.Relocating {
		return o
	}
	o.To = append(o.To, op.Intent.Source.Box)
	o.Quiet = op.Acknowledged() && op.Phase != hostclaim.Installing && op.Journal.Stuck == nil
	return o
}

// Handler takes hints that were signed with the deployment's secret. take must
// not wait.
func Handler(v *boxauth.Verifier, take func(Hint)) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, v.Handler(maxBody, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "unreadable body", http.StatusBadRequest)
			return
		}
		h, err := record.Decode[Hint](body)
		if err != nil || h.V != 1 {
			http.Error(w, "not a hint", http.StatusBadRequest)
			return
		}
		take(h)
		w.WriteHeader(http.StatusNoContent)
	})))
	return mux
}
