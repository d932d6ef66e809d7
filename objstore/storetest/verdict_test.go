package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// small is a store without streams, so that no check moves large bodies.
type small struct {
	objstore.Store
	objstore.Versioned
}

func unfit() objstore.Store {
	b := faulty["create-only is ignored"].broken
	b.Store = memstore.New()
	return small{b, b}
}

func TestAStoreIsUnfitForRequiredChecksAlone(t *testing.T) {
	failed := map[Need]int{}
	report := func(r Result) {
		if r.Err != nil {
			failed[r.Need]++
		}
	}
	err := Check(t.Context(), unfit(), report)
	require.ErrorIs(t, err, ErrUnfit)
	require.ErrorContains(t, err, fmt.Sprintf("%d required checks failed", failed[Required]))
	require.Positive(t, failed[Required])

	clear(failed)
	late := memstore.New()
	late.Now = func() time.Time { return time.Now().Add(time.Hour) }
	require.NoError(t, Check(t.Context(), small{late, late}, report))
	require.Equal(t, map[Need]int{Note: 1}, failed, "a wrong clock is a note")
}

func TestACleanUpThatFailsIsReportedAndNoVerdict(t *testing.T) {
	s := memstore.New()
	root := bench{Store: s, dir: prefix}
	_, err := root.put(t.Context(), root.key("k"), objstore.IfAbsent())
	require.NoError(t, err)
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpListVersions {
			return memstore.Lose
		}
		return memstore.None
	})
	require.ErrorIs(t, removeAll(t.Context(), s, prefix), memstore.ErrInjected)
	var last Result
	_ = Check(t.Context(), small{s, s}, func(r Result) { last = r })
	require.Equal(t, "clean-up", last.Name)
	require.Equal(t, Note, last.Need)
	require.ErrorIs(t, last.Err, memstore.ErrInjected)
}

// Where the removal ends half-way, the versions that are left are the newest:
// no older one comes back to light.
func TestTheVersionsOfAKeyAreRemovedOldestFirst(t *testing.T) {
	s := memstore.New()
	wrote := map[string][]string{}
	for i := range 60 {
		info, err := s.Put(t.Context(), fmt.Sprintf("%s%d", prefix, i%3), unique(), objstore.Always())
		require.NoError(t, err)
		wrote[info.Key] = append(wrote[info.Key], info.VersionID)
	}
	type removal struct{ key, version string }
	removals := make(chan removal, 60)
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpDeleteVersion {
			removals <- removal{r.Key, r.Version}
		}
		return memstore.None
	})
	require.NoError(t, removeAll(t.Context(), s, prefix))
	close(removals)
	removed := map[string][]string{}
	for r := range removals {
		removed[r.key] = append(removed[r.key], r.version)
	}
	require.Equal(t, wrote, removed)
}

func TestAVerdictSaysWhatTheStoreAnswered(t *testing.T) {
	require.NoError(t, want(fmt.Errorf("put: %w", objstore.ErrConflict), objstore.ErrConflict, "it"))
	require.ErrorContains(t, want(nil, objstore.ErrConflict, "it"), "it was accepted")
	reset := errors.New("connection reset")
	err := want(reset, objstore.ErrConflict, "it")
	require.ErrorIs(t, err, reset)
	require.ErrorContains(t, err, "it must be refused")
}

func TestAClockIsWorthANoteBeyondHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for off, noted := range map[time.Duration]bool{0: false, clockSlack: false, -clockSlack: false,
			clockSlack + 1: true, -clockSlack - 1: true} {
			s := memstore.New()
			s.Now = func() time.Time { return time.Now().Add(off) }
			require.Equal(t, noted, clock(t.Context(), bench{Store: s, dir: prefix}) != nil, off)
		}
	})
}

func TestNotesAreTaken(t *testing.T) {
	for name, b := range map[string]broken{
		"no phantom keys while keys are overwritten": {infos: phantom},
		"create-only over a deleted key": {put: func(s *memstore.Store, ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
			for _, w := range s.Log() {
				if w.Key == key && cond.IsAbsent() {
					return objstore.Info{}, objstore.ErrConflict
				}
			}
			return s.Put(ctx, key, body, cond)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b.Store = memstore.New()
			r := checkNamed(t, name).result(t.Context(), bench{Store: b, dir: prefix})
			require.Error(t, r.Err)
			require.Equal(t, Note, r.Need)
		})
	}
}

func TestAPatternDoesNotRepeatInStepWithAPage(t *testing.T) {
	const page = 4 << 10
	seen := map[string]bool{}
	for seed := range byte(4) {
		body := pattern(64*page, seed)
		for at := 0; at < len(body); at += page {
			require.False(t, seen[string(body[at:at+page])], "seed %d, offset %d", seed, at)
			seen[string(body[at:at+page])] = true
		}
	}
}

// among is a store that lives among other files.
type among struct {
	*memstore.Store
	path string
	err  error
}

func (a among) Foreign(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if a.path != "" || a.err != nil {
			yield(a.path, a.err)
		}
	}
}

func TestForeignFilesAreNamed(t *testing.T) {
	b := bench{Store: among{Store: memstore.New()}, dir: prefix}
	require.NoError(t, foreignFiles(t.Context(), b))
	b.Store = among{Store: memstore.New(), path: "notes.txt"}
	require.ErrorContains(t, foreignFiles(t.Context(), b), "notes.txt")
	unreadable := errors.New("unreadable")
	b.Store = among{Store: memstore.New(), err: unreadable}
	require.ErrorIs(t, foreignFiles(t.Context(), b), unreadable)
}

const onUnfit = "REGIONHA_STORETEST_UNFIT"

// TestRunFailsTheTestsOfAnUnfitStore runs itself: a failed test cannot be
// expected otherwise.
func TestRunFailsTheTestsOfAnUnfitStore(t *testing.T) {
	if os.Getenv(onUnfit) != "" {
		Run(t, func(*testing.T) objstore.Store {
			b := faulty["create-only is ignored"].broken
			b.Store = memstore.New()
			b.Store.Now = func() time.Time { return time.Now().Add(time.Hour) }
			return small{b, b}
		})
		return
	}
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.short")
	again.Env = append(os.Environ(), onUnfit+"=1")
	out, err := again.CombinedOutput()
	require.Error(t, err)
	for _, line := range []string{"--- FAIL: " + t.Name() + "/create-only (", "two boxes could both hold one claim",
		"--- SKIP: " + t.Name() + "/clock (", "note: the store's clock is", "--- SKIP: " + t.Name() + "/foreign_files (",
		"--- PASS: " + t.Name() + "/if-match (", "--- PASS: " + t.Name() + "/keys_with_empty_and_dot_components ("} {
		require.Contains(t, string(out), line)
	}
}
