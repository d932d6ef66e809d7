package hostguard

import "fmt"

// Install names one local install of a prepared generation: everything that the
// claim's receipt will say of it. Two installs are the same when they are equal.
type Install struct {
	Op                  string `json:"op"`
	Stamp               uint64 `json:"stamp"`    // the claim's install_stamp
	Prepared            string `json:"prepared"` // P
	InstallManifest     string `json:"install_manifest"`
	InstallSHA256       string `json:"install_sha256"` // both empty for an empty pin
	FilesManifest       string `json:"files_manifest"`
	FilesManifestSHA256 string `json:"files_manifest_sha256"`
}

// installRecord is install/install.json.
type installRecord struct {
	header
	Install Install `json:"install"`
	Done    bool    `json:"done"`
}

func (r installRecord) check(g *Guard) error {
	if err := r.header.check(g); err != nil {
		return err
	}
	if err := r.Install.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

func (i Install) check() error {
	if i.Op == "" || i.Stamp == 0 || i.Prepared == "" || i.FilesManifest == "" || i.FilesManifestSHA256 == "" {
		return fmt.Errorf("install %+v: op, stamp, prepared and files manifest with its digest are required", i)
	}
	if (i.InstallManifest == "") != (i.InstallSHA256 == "") {
		return fmt.Errorf("install manifest %q with digest %q: want both or neither", i.InstallManifest, i.InstallSHA256)
	}
	return nil
}

// VerifyInstall is nil only if this box finished exactly this install, by its
// complete record; otherwise [ErrNoInstall]. It takes no lock, and says nothing
// of the installed files themselves.
func (g *Guard) VerifyInstall(want Install) error {
	rec, _, err := read[installRecord](g, installFile)
	switch {
	case err != nil:
		return g.errorf("install: %w", err)
	case rec.Install != want:
		return g.errorf("install: %w: stamp %d, prepared %q; the journal has stamp %d, prepared %q",
			ErrNoInstall, want.Stamp, want.Prepared, rec.Install.Stamp, rec.Install.Prepared)
	case !rec.Done:
		return g.errorf("install: %w: stamp %d was begun and not finished", ErrNoInstall, want.Stamp)
	}
	return nil
}

// BeginInstall journals that an install of the active installation is about to
// change local state. done reports that this very install was finished before.
// A begun one, after a crash, is begun again: its steps must be ones that can be
// repeated. It replaces the record of an older installation; another install
// under the same stamp is [ErrStale].
func (h *Held) BeginInstall(plan Install) (done bool, err error) {
	rec, err := h.install(plan)
	switch {
	case err != nil:
		return false, err
	case rec.Install == plan:
		return rec.Done, nil
	case rec.Install.Stamp >= plan.Stamp:
		return false, h.g.errorf("install: %w: stamp %d was begun with prepared %q, not %q",
			ErrStale, rec.Install.Stamp, rec.Install.Prepared, plan.Prepared)
	}
	return false, h.saveInstall(rec, plan, false)
}

// FinishInstall journals that the install is complete. Everything that it wrote
// must be durable before. One that was not begun is [ErrNoInstall]; a finished
// one again is nil.
func (h *Held) FinishInstall(plan Install) error {
	rec, err := h.install(plan)
	switch {
	case err != nil:
		return err
	case rec.Install != plan:
		return h.g.errorf("install: %w: stamp %d, prepared %q was not begun", ErrNoInstall, plan.Stamp, plan.Prepared)
	case rec.Done:
		return nil
	}
	return h.saveInstall(rec, plan, true)
}

// install reads the record for a step of plan.
func (h *Held) install(plan Install) (installRecord, error) {
	if err := h.check(); err != nil {
		return installRecord{}, err
	}
	if err := plan.check(); err != nil {
		return installRecord{}, h.g.errorf("%w", err)
	}
	if plan.Stamp != h.at.Stamp {
		return installRecord{}, h.g.errorf("install: %w: stamp %d, active is %d", ErrStale, plan.Stamp, h.at.Stamp)
	}
	rec, _, err := read[installRecord](h.g, installFile)
	if err != nil {
		return installRecord{}, h.g.errorf("install: %w", err)
	}
	return rec, nil
}

func (h *Held) saveInstall(rec installRecord, plan Install, done bool) error {
	rec.header, rec.Install, rec.Done = rec.next(h.g), plan, done
	if err := h.g.disk.save(h.g.path(installFile), rec); err != nil {
		return h.g.errorf("install: %w", err)
	}
	return nil
}
