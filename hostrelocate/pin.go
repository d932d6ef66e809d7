package hostrelocate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// ErrFilesUnevidenced: the database has data but no files manifest with a live
// instance key goes with it. A fresh key would make sealed data unreadable, so
// an operator decides.
var ErrFilesUnevidenced = errors.New("files are not evidenced")

// Pin is the immutable object that fixes what a relocation carries over. It
// lies at [hostclaim.PinKey] and names exact objects; pinning reads no bodies
// but the files manifest's, which it retains.
type Pin struct {
	V        int                `json:"v"`
	Host     string             `json:"host"`
	Op       string             `json:"op"`
	Gen      uint64             `json:"gen"`       // of the claim that it was selected against
	ListedAt time.Time          `json:"listed_at"` // when its listing began
	Set      hostdb.RecoverySet `json:"set"`
	Files    FilesPin           `json:"files"`
	By       hostclaim.Member   `json:"by"`
}

// FilesPin is the files half of a pin: the newest manifest of the admitted
// chain, and the copy that was retained of it.
type FilesPin struct {
	Generation string `json:"generation"`
	Key        string `json:"key"` // of the source's manifest
	Seq        uint64 `json:"seq"`
	SHA256     string `json:"sha256"`
	Retained   string `json:"retained"` // key of the exact bytes, in the control bucket
}

func (p Pin) position() hostclaim.Position {
	return hostclaim.Position{Generation: p.Set.Generation, TXID: p.Set.MaxTXID,
		FilesGeneration: p.Files.Generation, FilesSeq: p.Files.Seq}
}

// size is how many bytes of database a target fetches.
func (p Pin) size() int64 {
	var n int64
	for _, o := range p.Set.Objects {
		n += o.Size
	}
	return n
}

// cite is what the claim journals of the pin whose stored bytes are body.
func (p Pin) cite(body []byte) hostclaim.Pin {
	return hostclaim.Pin{Key: hostclaim.PinKey(p.Host, p.Op, p.Gen), SHA256: record.Digest(body),
		ListedAt: p.ListedAt, Position: p.position(), Size: p.size(), FilesSHA256: p.Files.SHA256}
}

// ReadPin reads the pin that a claim journaled. One GET. Other bytes than the
// claim cites are an error.
func ReadPin(ctx context.Context, control objstore.Store, cited hostclaim.Pin) (Pin, error) {
	body, err := readExact(ctx, control, cited.Key, cited.SHA256)
	if err != nil {
		return Pin{}, err
	}
	return record.Decode[Pin](body)
}

// ReadRetained reads the files manifest that was kept beside the pin; nil where
// the pin is of no files. One GET.
func ReadRetained(ctx context.Context, control objstore.Store, p Pin) ([]byte, error) {
	if p.Files.Retained == "" {
		return nil, nil
	}
	return readExact(ctx, control, p.Files.Retained, p.Files.SHA256)
}

func readExact(ctx context.Context, s objstore.Store, key, sha256 string) ([]byte, error) {
	o, err := s.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if got := record.Digest(o.Body); got != sha256 {
		return nil, fmt.Errorf("%s holds %s, cited as %s", key, got, sha256)
	}
	return o.Body, nil
}

// makePin selects against the observed claim and writes the pin, the retained
// manifest first. A pin that a crash left under this claim's key is taken as it
// is: only one selection is ever made against one claim.
func (w *Worker) makePin(ctx context.Context, o hostclaim.Observed, listedAt time.Time) (hostclaim.Pin, error) {
	c := o.Claim
	b, err := Newest(ctx, w.Data, c)
	if err != nil {
		return hostclaim.Pin{}, err
	}
	if err := evidenced(c, b); err != nil {
		return hostclaim.Pin{}, err
	}
	pin := Pin{V: 1, Host: c.Host, Op: c.Op.ID, Gen: c.Gen, ListedAt: listedAt.UTC(), Set: b.Set, By: w.Self}
	if b.Position.FilesGeneration != "" {
		pin.Files = FilesPin{Generation: b.Position.FilesGeneration, Key: b.Files.Key, Seq: b.Files.Seq, SHA256: b.Files.SHA256,
			Retained: fmt.Sprintf("control/relocations/%s/%s/manifest-%s.json", c.Host, c.Op.ID, b.Files.SHA256)}
		if _, err := objstore.Create(ctx, w.Control, pin.Files.Retained, b.Files.Bytes); err != nil {
			return hostclaim.Pin{}, fmt.Errorf("retain the files manifest: %w", err)
		}
	}
	return w.storePin(ctx, pin)
}

func (w *Worker) storePin(ctx context.Context, pin Pin) (hostclaim.Pin, error) {
	body, err := record.Encode(pin)
	if err != nil {
		return hostclaim.Pin{}, err
	}
	key := hostclaim.PinKey(pin.Host, pin.Op, pin.Gen)
	_, err = objstore.Create(ctx, w.Control, key, body)
	if err == nil {
		return pin.cite(body), nil
	}
	if !errors.Is(err, objstore.ErrConflict) {
		return hostclaim.Pin{}, fmt.Errorf("write the pin: %w", err)
	}
	there, err := w.Control.Get(ctx, key)
	if err != nil {
		return hostclaim.Pin{}, fmt.Errorf("read the pin that lies there: %w", err)
	}
	was, err := record.Decode[Pin](there.Body)
	if err != nil {
		return hostclaim.Pin{}, fmt.Errorf("%s: %w", key, err)
	}
	if was.Host != pin.Host || was.Op != pin.Op || was.Gen != pin.Gen {
		return hostclaim.Pin{}, fmt.Errorf("%s is the pin of %s %s at %d", key, was.Host, was.Op, was.Gen)
	}
	return was.cite(there.Body), nil
}

// evidenced refuses a database whose files are not there: once a writer had
// data, the pinned manifest must hold the key that sealed it.
func evidenced(c *hostclaim.Claim, b Baseline) error {
	if c.Holder.Session == 0 || b.Set.Empty {
		return nil
	}
	if b.Position.FilesGeneration == "" {
		return fmt.Errorf("%w: no manifest in the chain %v", ErrFilesUnevidenced, c.FilesChain())
	}
	ok, err := hostfiles.HasInstanceKey(b.Files.Bytes)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: manifest %s holds no instance key", ErrFilesUnevidenced, b.Files.Key)
	}
	return nil
}
