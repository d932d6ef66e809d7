package hostfiles

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// check holds an entry to every rule that it can break on its own.
func (e *Entry) check(location string) error {
	if err := e.checkNames(); err != nil {
		return err
	}
	if err := e.checkKind(location); err != nil {
		return fmt.Errorf("%q: %w", e.name(), err)
	}
	return nil
}

func (e *Entry) checkNames() error {
	if err := checkSplit("path", e.Path, e.PathB64); err != nil {
		return err
	}
	if err := checkPath(e.name()); err != nil {
		return err
	}
	if e.Kind != KindSymlink {
		return nil
	}
	if err := checkSplit("target", e.Target, e.TargetB64); err != nil {
		return err
	}
	if target := e.target(); len(target) > maxTarget || strings.IndexByte(target, 0) >= 0 {
		return fmt.Errorf("%q: target %q: want at most %d bytes and no NUL", e.name(), target, maxTarget)
	}
	return nil
}

// checkSplit refuses two spellings of one string, so that paths can be compared.
func checkSplit(field, plain, b64 string) error {
	if (plain == "") == (b64 == "") {
		return fmt.Errorf("%s %q and %s_b64 %q: want exactly one", field, plain, field, b64)
	}
	if b64 == "" {
		return nil
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(b64)
	if err != nil || utf8.Valid(raw) || base64.StdEncoding.EncodeToString(raw) != b64 {
		return fmt.Errorf("%s_b64 %q: want the standard base64 of bytes that are not UTF-8", field, b64)
	}
	return nil
}

// checkPath refuses every path that is not a plain way down from its root.
func checkPath(p string) error {
	switch p {
	case FilesRoot, InstanceKey, EnvFile, WakeState:
		return nil
	}
	below, ok := strings.CutPrefix(p, FilesRoot+"/")
	if !ok {
		return fmt.Errorf("path %q: want one below %s/, or one of %s", p, FilesRoot, strings.Join(platformItems, ", "))
	}
	if len(p) > maxPath {
		return fmt.Errorf("path of %d bytes, at most %d", len(p), maxPath)
	}
	for part := range strings.SplitSeq(below, "/") {
		if part == "" || part == "." || part == ".." || len(part) > maxComponent || strings.IndexByte(part, 0) >= 0 {
			return fmt.Errorf("path %q: component %q leads elsewhere or cannot be a file's name", p, part)
		}
	}
	return nil
}

func (e *Entry) checkKind(location string) error {
	if isPlatform(e.name()) && e.Kind != KindFile {
		return fmt.Errorf("kind %q: a platform item is always a file", e.Kind)
	}
	if e.Mode > 0o7777 {
		return fmt.Errorf("mode %#o: want permission bits only", e.Mode)
	}
	if len(e.Skipped) > maxReason {
		return fmt.Errorf("skipped: %d bytes, at most %d", len(e.Skipped), maxReason)
	}
	if !e.MTime.Equal(clampTime(e.MTime)) {
		return fmt.Errorf("mtime %s: want one from 1678 to 2262", e.MTime)
	}
	// What the kind allows is copied to a bare entry; anything more is refused.
	bare := Entry{Path: e.Path, PathB64: e.PathB64, Kind: e.Kind, Seq: e.Seq}
	switch e.Kind {
	case KindTombstone:
	case KindDir:
		bare.Mode, bare.MTime, bare.Owner, bare.Skipped = e.Mode, e.MTime, e.Owner, e.Skipped
	case KindSymlink:
		bare.Target, bare.TargetB64, bare.Owner = e.Target, e.TargetB64, e.Owner
	case KindSpecial:
		bare.Skipped = e.Skipped
		if e.Skipped == "" {
			return errors.New("a special file that is not skipped")
		}
	case KindFile:
		return e.checkFile(location)
	default:
		return fmt.Errorf("kind %q: unknown", e.Kind)
	}
	if *e != bare {
		return fmt.Errorf("it has members that a %s cannot have", e.Kind)
	}
	return nil
}

func (e *Entry) checkFile(location string) error {
	if e.Target != "" || e.TargetB64 != "" {
		return errors.New("a file with a target")
	}
	if e.Object == "" {
		if e.Skipped == "" || e.Size != 0 || e.SHA256 != "" || e.Torn {
			return errors.New("a file with neither content nor a reason why not")
		}
		return nil
	}
	limit := int64(maxFile)
	if isPlatform(e.name()) {
		limit = maxPlatform
		if e.Mode != 0 || !e.MTime.IsZero() || e.Owner != nil {
			return errors.New("a platform item with a mode, time or owner: it has mode 0600 and no other")
		}
	}
	if e.Size < 0 || e.Size > limit {
		return fmt.Errorf("size %d: want 0 to %d", e.Size, limit)
	}
	_, _, sum, err := parseObjectKey(location, e.Object)
	if err != nil {
		return err
	}
	if sum != e.SHA256 {
		return fmt.Errorf("sha256 %q: the object is %s", e.SHA256, sum)
	}
	return nil
}
