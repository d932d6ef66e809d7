package hostfiles

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/carlosframework/regionha/internal/record"
)

// scanAll finds the whole files tree and the platform items.
func (p *Publisher) scanAll() (view, error) {
	if err := p.sameRoot(); err != nil {
		return view{}, err
	}
	v, err := scanTwice(p.durable, func() (view, error) { return scanTree(p.root) })
	if err != nil {
		return view{}, err
	}
	items, err := scanPlatform(p.platform)
	v.found = append(v.found, items.found...)
	v.whole = true
	return v, err
}

// scanTwice looks again where a path that was published is missing: a directory
// that was renamed during one scan may have been passed by on both sides.
func scanTwice(st *state, scan func() (view, error)) (view, error) {
	v, err := scan()
	if err == nil && len(v.missing(st)) > 0 {
		return scan()
	}
	return v, err
}

// scanItems finds the platform items only.
func (p *Publisher) scanItems() (view, error) { return scanPlatform(p.platform) }

// sameRoot refuses to scan when another directory has taken the root's place:
// an empty mount point must not read as a tree in which all was deleted.
func (p *Publisher) sameRoot() error {
	now, err := os.Stat(p.cfg.Root)
	if err != nil {
		return err
	}
	opened, err := p.root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(now, opened) {
		return fmt.Errorf("%s: another directory than the one that was opened", p.cfg.Root)
	}
	return nil
}

// publishView is one turn.
func (p *Publisher) publishView(ctx context.Context, scan func() (view, error)) error {
	if err := p.settle(ctx); err != nil {
		return err
	}
	v, err := scan()
	if err != nil {
		return err
	}
	update, gone, err := p.compare(ctx, v)
	if err != nil || len(update)+len(gone) == 0 {
		return err
	}
	next, err := p.successor(ctx, update, gone)
	if err != nil {
		return err
	}
	p.pending = next
	return p.settle(ctx)
}

// settle sends the pending manifest, and again in the next turn if its outcome
// is unknown: the same bytes under the same condition, so that it applies once,
// however often it lands.
func (p *Publisher) settle(ctx context.Context) error {
	if p.pending == nil {
		return nil
	}
	if err := p.w.authorize(ctx); err != nil {
		return err
	}
	info, err := putManifest(ctx, p.w.store, p.w.target.manifestKey(), p.pending.body, p.durable.condition())
	if err != nil {
		return err
	}
	p.pending.etag = info.ETag
	p.durable, p.pending = p.pending, nil
	p.made.named()
	return nil
}

// compare brings the entries of v up to date with the store's contents and
// returns those that differ from what is published, and a tombstone for each
// path that is gone.
func (p *Publisher) compare(ctx context.Context, v view) (update, gone []Entry, err error) {
	results, err := p.examineAll(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	var missing []string
	if v.whole {
		missing = v.missing(p.durable)
	}
	for i := range results {
		r := &results[i]
		name := v.found[i].name
		before, published := p.durable.get(name)
		switch {
		case r.vanished && published && !isPlatform(name):
			missing = append(missing, name)
		case r.vanished:
		case !published || !before.same(&r.entry):
			if r.entry.Seq == 0 {
				r.entry.Seq = p.seq.Add(1)
			}
			p.report(&r.entry)
			update = append(update, r.entry)
		}
	}
	for _, name := range missing {
		tombstone := Entry{Kind: KindTombstone, Seq: p.seq.Add(1)}
		tombstone.setName(name)
		gone = append(gone, tombstone)
	}
	return update, gone, nil
}

// report says loudly what is not kept, or not kept whole.
func (p *Publisher) report(e *Entry) {
	switch {
	case e.Skipped != "":
		p.log.Warn("not kept in the files manifest", "path", e.name(), "why", e.Skipped)
	case e.Torn:
		p.log.Warn("published while it changed", "path", e.name())
	}
}

// successor builds the state in which update and gone are published, and makes
// its base durable where one is due.
func (p *Publisher) successor(ctx context.Context, update, gone []Entry) (*state, error) {
	next := &state{base: p.durable.base, changes: p.durable.with(update, gone)}
	var err error
	if len(next.changes) <= p.foldAt {
		if err = p.encode(next, p.durable.manifest.Base); err != nil || len(next.body) <= maxManifest {
			return next, err
		}
	}
	base, err := p.fold(ctx, next)
	if err != nil {
		return nil, err
	}
	return next, p.encode(next, base)
}

func (p *Publisher) encode(next *state, base *BaseRef) (err error) {
	next.manifest = p.durable.next(p.w.target, p.seq.Load(), base, next.changes)
	next.body, err = record.Encode(next.manifest)
	return err
}

// fold moves the changed files of next into a new base. Platform items stay, so
// that a manifest alone says what they are.
func (p *Publisher) fold(ctx context.Context, next *state) (*BaseRef, error) {
	base, items := map[string]Entry{}, map[string]Entry{}
	for name, e := range next.live() {
		if isPlatform(name) {
			items[name] = e
		} else {
			base[name] = e
		}
	}
	body, err := encodeBase(p.w.target.Location, sorted(base))
	if err != nil {
		return nil, err
	}
	ref := &BaseRef{SHA256: digest(body), Size: int64(len(body)), Entries: len(base)}
	ref.Key, err = p.w.createObject(ctx, p.seq.Load(), ref.SHA256, bytes.NewReader(body), ref.Size)
	next.base, next.changes = base, items
	return ref, err
}
