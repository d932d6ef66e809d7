package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/internal/survey"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/placement"
)

// CreateDeadline is how long the selected box has to take a new host. After it
// the create is cancelled.
const CreateDeadline = 10 * time.Minute

// finishTimeout bounds the requests between the claim of a create and its end.
const finishTimeout = 30 * time.Second

// NewHost is what a create asks for. What is left empty gets the defaults of
// the host's record.
type NewHost struct {
	Host         string              `json:"host"`
	Account      string              `json:"account"`
	App          string              `json:"app"`
	Region       string              `json:"region"`
	Pool         string              `json:"pool"`
	Command      []string            `json:"command"`
	Env          map[string]string   `json:"env"`
	ReadyPath    string              `json:"ready_path"`
	StartTimeout hostrecord.Duration `json:"start_timeout"`
	StopTimeout  hostrecord.Duration `json:"stop_timeout"`

	FilesSnapshotInterval hostrecord.Duration `json:"files_snapshot_interval"`
}

// Creation is a create that has begun.
type Creation struct {
	Host        string    `json:"host"`
	Op          string    `json:"op"`
	Incarnation string    `json:"incarnation"`
	Region      string    `json:"region"`
	Box         string    `json:"box"`
	StartedAt   time.Time `json:"started_at"`
}

// record is the host's record as its create writes it.
func (n NewHost) record(now time.Time) hostrecord.Record {
	return hostrecord.Record{
		Gen: 1, Write: record.Nonce(), Incarnation: record.Nonce(), CreatedAt: now,
		Host: n.Host, Account: n.Account, App: n.App, Region: n.Region, Pool: n.Pool,
		Command: n.Command, Env: n.Env, ReadyPath: n.ReadyPath,
		StartTimeout: n.StartTimeout, StopTimeout: n.StopTimeout, FilesSnapshotInterval: n.FilesSnapshotInterval,
		MaxLag: hostrecord.Duration(time.Minute),
	}.WithDefaults()
}

// Create begins a host: it selects a box, once, takes the claim for it, and
// writes the host's record. The box then completes the create by itself;
// [Console.Await] watches it. Where the record cannot be written the create is
// cancelled again.
func (c *Console) Create(ctx context.Context, n NewHost) (Creation, error) {
	rec := n.record(c.now())
	if err := rec.Check(); err != nil {
		return Creation{}, refuseCreate(n.Host, err, "correct it and create the host again")
	}
	claim, err := c.freeClaim(ctx, n.Host)
	if err != nil {
		return Creation{}, err
	}
	old, err := c.oldRecord(ctx, rec)
	if err != nil {
		return Creation{}, err
	}
	rec.Gen = old.Gen + 1
	selected, err := c.selectBox(ctx, rec, claim)
	if err != nil {
		return Creation{}, err
	}
	begun, err := c.begin(ctx, claim, rec, selected)
	if err != nil {
		return Creation{}, err
	}
	// From here the create is finished or undone, whatever becomes of the caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	if err := c.writeRecord(ctx, old, rec); err != nil {
		_, cancelErr := c.apply(ctx, begun, hostclaim.CancelCreate(begun.Claim.Op.ID, "its record could not be written"))
		if !taken(cancelErr) { // its box found the record: it was written after all
			return Creation{}, errors.Join(fmt.Errorf("%s was not created: %w", n.Host, err), cancelErr)
		}
	}
	_ = regionfile.Bump(ctx, c.Store, rec.Region, rec.Host) // the box finds the claim on its sweep too
	return Creation{Host: n.Host, Op: begun.Claim.Op.ID, Incarnation: rec.Incarnation, Region: rec.Region,
		Box: selected.Box, StartedAt: begun.Claim.Op.StartedAt}, nil
}

// taken reports whether a create could not be cancelled because its box took the
// host.
func taken(cancelErr error) bool {
	return errors.Is(cancelErr, hostclaim.ErrWrongState) || errors.Is(cancelErr, hostclaim.ErrStaleOp)
}

func refuseCreate(host string, err error, next string) error {
	return &Refusal{What: fmt.Sprintf("%q was not created", host), Err: err, Next: next}
}

// freeClaim observes a claim that a create may take. A create that is overdue
// is cancelled on the way.
func (c *Console) freeClaim(ctx context.Context, host string) (hostclaim.Observed, error) {
	o, err := hostclaim.Read(ctx, c.Store, host)
	if err != nil {
		return o, err
	}
	if overdue(o.Claim, c.now()) {
		if o, err = c.cancelOverdue(ctx, o); err != nil {
			return o, err
		}
	}
	if o.Claim == nil || o.Claim.Op.Kind == hostclaim.Free {
		return o, nil
	}
	return o, refuseCreate(host, fmt.Errorf("there is a host of this name, %s", o.Claim.Op.Kind),
		"look at it with: console host show "+host)
}

func overdue(claim *hostclaim.Claim, now time.Time) bool {
	return claim != nil && claim.Op.Kind == hostclaim.Creating && now.Sub(claim.Op.StartedAt) > CreateDeadline
}

func (c *Console) cancelOverdue(ctx context.Context, o hostclaim.Observed) (hostclaim.Observed, error) {
	reason := fmt.Sprintf("%s did not take it within %s", o.Claim.Op.Intent.Selected.Box, CreateDeadline)
	return c.apply(ctx, o, hostclaim.CancelCreate(o.Claim.Op.ID, reason))
}

// oldRecord is the record that an earlier incarnation left, or the zero one.
func (c *Console) oldRecord(ctx context.Context, rec hostrecord.Record) (hostrecord.Stored, error) {
	old, err := hostrecord.Read(ctx, c.Store, rec.Account, rec.App, rec.Host)
	if errors.Is(err, objstore.ErrNotFound) {
		return hostrecord.Stored{}, nil
	}
	return old, err
}

func (c *Console) selectBox(ctx context.Context, rec hostrecord.Record, o hostclaim.Observed) (hostclaim.Member, error) {
	v, err := c.view(ctx)
	if err != nil {
		return hostclaim.Member{}, err
	}
	if _, ok := v.Region(rec.Region); !ok {
		return hostclaim.Member{}, refuseCreate(rec.Host, fmt.Errorf("region %q is not in the roster", rec.Region),
			"name a region that \"console init\" set up")
	}
	want := placement.Want{Region: rec.Region, Pool: rec.Pool, SecretsKeyFP: c.SecretFP}
	if o.Claim != nil {
		want.Lost, want.Owing = o.Claim.Lost, survey.Owing(o.Claim)
	}
	member, err := v.Choose(want, rec.Host, rec.Account+"/"+rec.App)
	if err != nil {
		return member, refuseCreate(rec.Host, err, "start or enroll a box of that region, then create it again; see: console box list")
	}
	return member, nil
}

func (c *Console) begin(ctx context.Context, o hostclaim.Observed, rec hostrecord.Record, selected hostclaim.Member) (hostclaim.Observed, error) {
	_, sha256, err := hostrecord.Encode(rec)
	if err != nil {
		return o, err
	}
	begun, err := c.apply(ctx, o, hostclaim.BeginCreate(hostclaim.NewHost{
		Incarnation: rec.Incarnation, Account: rec.Account, App: rec.App, Region: rec.Region,
		RecordKey: hostrecord.Key(rec.Account, rec.App, rec.Host), RecordSHA256: sha256,
	}, record.Nonce(), c.by(), c.now(), selected))
	if errors.Is(err, hostclaim.ErrWrongState) {
		return begun, refuseCreate(rec.Host, err, "somebody else was first; look at it with: console host show "+rec.Host)
	}
	return begun, err
}

// writeRecord writes over exactly what oldRecord saw. The claim names this
// incarnation by now, so what an earlier one left means nothing.
func (c *Console) writeRecord(ctx context.Context, old hostrecord.Stored, rec hostrecord.Record) error {
	var err error
	if old.ETag == "" {
		_, err = hostrecord.Create(ctx, c.Store, rec)
	} else {
		_, err = hostrecord.Replace(ctx, c.Store, old, rec)
	}
	return err
}
