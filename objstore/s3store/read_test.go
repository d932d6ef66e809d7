package s3store_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
)

var modified = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func TestAReadIsRetried(t *testing.T) {
	s, server := scripted(t, refuse(503, "SlowDown"), cut, object(`"e"`, "body"))
	o, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, objstore.Info{Key: "k", ETag: `"e"`, Size: 4, ModTime: modified}, o.Info)
	require.Equal(t, "body", string(o.Body))
	require.Len(t, server.asked(), 3)
}

func TestOnlyAMissingKeyIsNotFound(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		found  bool
	}{
		"the key":     {refuse(404, "NoSuchKey"), false},
		"the version": {refuse(404, "NoSuchVersion"), false},
		"the bucket":  {refuse(404, "NoSuchBucket"), true},
		"a proxy":     {http.NotFound, true},
		"no body":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, true},
		"refused":     {refuse(403, "AccessDenied"), true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := scripted(t, c.answer)
			_, err := s.Get(t.Context(), "k")
			require.Error(t, err)
			require.Equal(t, c.found, !isNotFound(err), "%v", err)
			_, _, err = s.GetVersion(t.Context(), "k", "v")
			require.Equal(t, c.found, !isNotFound(err), "%v", err)
		})
	}
}

func isNotFound(err error) bool {
	return err != nil && strings.Contains(err.Error(), objstore.ErrNotFound.Error())
}

func TestABodyThatBreaksOffIsContinued(t *testing.T) {
	body := strings.Repeat("0123456789", 10_000)
	s, server := scripted(t, truncated(`"e"`, body), object(`"e"`, body))
	r, info, err := s.GetReader(t.Context(), "k", "", 0)
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, int64(len(body)), info.Size)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, body, string(got))
	again := server.asked()[1]
	require.Equal(t, "bytes=50000-", again.Header.Get("Range"))
	require.Equal(t, `"e"`, again.Header.Get("If-Match"))
}

func TestABodyThatChangesWhileItIsReadIsAnError(t *testing.T) {
	body := strings.Repeat("0123456789", 10_000)
	for name, second := range map[string]http.HandlerFunc{
		"a server that keeps conditions": refuse(412, "PreconditionFailed"),
		"a server that ignores them":     func(w http.ResponseWriter, r *http.Request) { r.Header.Del("If-Match"); object(`"f"`, body)(w, r) },
		"a server that ignores ranges":   func(w http.ResponseWriter, r *http.Request) { r.Header.Del("Range"); object(`"e"`, body)(w, r) },
		"a shorter object":               object(`"e"`, body[:60_000]),
		"it is gone":                     refuse(404, "NoSuchKey"),
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := scripted(t, truncated(`"e"`, body), second)
			r, _, err := s.GetReader(t.Context(), "k", "", 0)
			require.NoError(t, err)
			defer r.Close()
			got, err := io.ReadAll(r)
			require.Error(t, err)
			require.Len(t, got, 50_000, "what was read is of one object")
		})
	}
}

func TestAServerThatIgnoresRangesIsNotReadFromAnOffset(t *testing.T) {
	s, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) { r.Header.Del("Range"); object(`"e"`, "body")(w, r) })
	_, _, err := s.GetReader(t.Context(), "k", "", 2)
	require.ErrorContains(t, err, "ignores the range")
}

func TestABodyThatNeverEndsIsAnError(t *testing.T) {
	s, server := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Content-Length", "100")
		if rng := r.Header.Get("Range"); rng != "" {
			w.Header().Set("Content-Range", "bytes 0-99/100")
			w.WriteHeader(http.StatusPartialContent)
		}
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := s.Get(ctx, "k")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Len(t, server.asked(), 4, "attempts without progress are bounded")
}

func TestReadingEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	s, _ := scripted(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "slow")
		_ = http.NewResponseController(w).Flush()
		<-release
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	r, _, err := s.GetReader(ctx, "k", "", 0)
	require.NoError(t, err)
	defer r.Close()
	_, err = io.ReadFull(r, make([]byte, 4))
	require.NoError(t, err)
	cancel()
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, context.Canceled)
}

func TestAReadOfAnotherETagIsAConflict(t *testing.T) {
	s, server := scripted(t, refuse(412, "PreconditionFailed"))
	_, _, err := s.GetReader(t.Context(), "k", `"old"`, 7)
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.Equal(t, `"old"`, server.asked()[0].Header.Get("If-Match"))
	require.Equal(t, "bytes=7-", server.asked()[0].Header.Get("Range"))
}

// entry is an object in a listing.
func entry(key string) string {
	return "<Contents><Key>" + key + `</Key><ETag>"e"</ETag><Size>1</Size><LastModified>2026-03-04T05:06:07.000Z</LastModified></Contents>`
}

func keysOf(t *testing.T, s store, prefix string) (keys []string, err error) {
	t.Helper()
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			return keys, err
		}
		require.Equal(t, objstore.Info{Key: info.Key, ETag: `"e"`, Size: 1, ModTime: modified}, info)
		keys = append(keys, info.Key)
	}
	return keys, nil
}

func TestAListingGoesThroughItsPages(t *testing.T) {
	page := "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>%t</IsTruncated><NextContinuationToken>%s</NextContinuationToken>%s</ListBucketResult>"
	s, server := scripted(t,
		xml(page, true, "next", entry("pre/a%2Bb")),
		refuse(503, "SlowDown"),
		xml(page, false, "", entry("pre/c+d")))
	keys, err := keysOf(t, s, "x y")
	require.NoError(t, err)
	require.Equal(t, []string{"a+b", "c d"}, keys)
	require.Equal(t, "pre/x y", server.asked()[0].URL.Query().Get("prefix"))
	require.Equal(t, "next", server.asked()[2].URL.Query().Get("continuation-token"))
}

func TestAListingThatCannotBeWholeIsAnError(t *testing.T) {
	first := xml("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken>%s</ListBucketResult>", entry("pre/a"))
	for name, second := range map[string]http.HandlerFunc{
		"the second page is refused":   refuse(403, "AccessDenied"),
		"the bucket is gone":           refuse(404, "NoSuchBucket"),
		"pages that do not advance":    first,
		"a key outside the prefix":     xml("<ListBucketResult><IsTruncated>false</IsTruncated>%s</ListBucketResult>", entry("other/a")),
		"a key that cannot be decoded": xml("<ListBucketResult><IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>%s</ListBucketResult>", entry("pre/%zz")),
		"no document":                  func(http.ResponseWriter, *http.Request) {},
		"half a document":              xml("<ListBucketResult><IsTruncated>false</IsTruncated>%s", entry("pre/b")),
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := scripted(t, first, second)
			_, err := keysOf(t, s, "")
			require.Error(t, err)
			require.NotErrorIs(t, err, objstore.ErrNotFound)
		})
	}
}

func TestAVersionThatIsListedTwiceIsYieldedOnce(t *testing.T) {
	version := func(key, id string) string {
		return fmt.Sprintf("<Version><Key>pre/%s</Key><VersionId>%s</VersionId><Size>1</Size></Version>", key, id)
	}
	page := "<ListVersionsResult><IsTruncated>%t</IsTruncated><NextKeyMarker>%s</NextKeyMarker><NextVersionIdMarker>%s</NextVersionIdMarker>%s</ListVersionsResult>"
	s, server := scripted(t,
		xml(page, true, "pre/a", "1", version("a", "2")+"<DeleteMarker><Key>pre/a</Key><VersionId>3</VersionId></DeleteMarker>"+version("a", "1")),
		xml(page, false, "", "", version("a", "1")+version("b", "1")))
	var seen []string
	for info, err := range s.ListVersions(t.Context(), "") {
		require.NoError(t, err)
		seen = append(seen, info.Key+" "+info.VersionID)
	}
	require.Equal(t, []string{"a 2", "a 1", "b 1"}, seen)
	require.Equal(t, "pre/a", server.asked()[1].URL.Query().Get("key-marker"))

	s, _ = scripted(t, xml(page, true, "pre/a", "1", version("a", "1")))
	var last error
	for _, err := range s.ListVersions(t.Context(), "") {
		last = err
	}
	require.ErrorContains(t, last, "do not advance")
}

func TestDeletingAVersionThatIsNotThere(t *testing.T) {
	missing := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(404)
			return
		}
		refuse(400, "InvalidArgument")(w, r)
	}
	s, _ := scripted(t, missing)
	require.NoError(t, s.DeleteVersion(t.Context(), "k", "v"))
	s, _ = scripted(t, refuse(400, "InvalidArgument"))
	require.ErrorIs(t, s.DeleteVersion(t.Context(), "k", "v"), objstore.ErrUnknown)
	s, _ = scripted(t, refuse(403, "AccessDenied"))
	require.ErrorIs(t, s.DeleteVersion(t.Context(), "k", "v"), objstore.ErrUnknown)
}

func TestACopyEscapesItsSource(t *testing.T) {
	s, server := scripted(t, xml(`<CopyObjectResult><ETag>"c"</ETag></CopyObjectResult>`))
	info, err := s.CopyVersion(t.Context(), "a b+ü%/k", "v/1", "dst")
	require.NoError(t, err)
	require.Equal(t, `"c"`, info.ETag)
	require.Equal(t, "bucket/pre/a%20b%2B%C3%BC%25/k?versionId=v%2F1", server.asked()[0].Header.Get("X-Amz-Copy-Source"))
	s, _ = scripted(t, refuse(404, "NoSuchVersion"))
	_, err = s.CopyVersion(t.Context(), "k", "v", "dst")
	require.ErrorIs(t, err, objstore.ErrNotFound)
}
