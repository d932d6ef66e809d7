package imds_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud/imds"
	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/simcloud"
	"github.com/carlosframework/regionha/objstore/memstore"
)

var _ boxid.Source = (*imds.Service)(nil)

func TestAnInstanceEnrollsByItsOwnMetadata(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	sim, err := simcloud.New(simcloud.Config{CertDir: dir})
	require.NoError(t, err)
	t.Cleanup(sim.Close)
	i, err := sim.Launch("eu-west-1", "")
	require.NoError(t, err)
	other, err := sim.Launch("us-east-1", "")
	require.NoError(t, err)

	store, ctx := memstore.New(), t.Context()
	require.NoError(t, boxid.Publish(ctx, store, "a", imds.New(i.IMDS), time.Unix(1, 0)))
	stored, err := store.Get(ctx, boxid.Key("a"))
	require.NoError(t, err)
	certs, err := boxid.LoadCerts(dir)
	require.NoError(t, err)
	verifier := boxid.Verifier{Account: simcloud.DefaultAccount, Certs: certs}
	proof, err := verifier.Enroll(stored.Body, boxid.Expect{Box: "a", AWSRegion: "eu-west-1", InstanceID: i.ID})
	require.NoError(t, err)

	own, err := imds.New(i.IMDS).Cloud(ctx)
	require.NoError(t, err)
	require.Equal(t, proof.Cloud(), own)

	require.ErrorIs(t, boxid.Publish(ctx, store, "a", imds.New(other.IMDS), time.Unix(1, 0)), boxid.ErrTaken)
}

func TestTheEndpointIsTheSDKsOwnWhenNoneIsGiven(t *testing.T) {
	sim, err := simcloud.New(simcloud.Config{CertDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(sim.Close)
	i, err := sim.Launch("eu-west-1", "")
	require.NoError(t, err)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", i.IMDS)
	own, err := imds.New("").Cloud(t.Context())
	require.NoError(t, err)
	require.Equal(t, i.ID, own.InstanceID)
}

// metadata is a service that answers the token and the document as told.
func metadata(t *testing.T, token, document http.HandlerFunc) *imds.Service {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", token)
	mux.HandleFunc("GET /latest/dynamic/instance-identity/document", document)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return imds.New(server.URL)
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const document = `{"accountId":"123456789012","region":"eu-west-1","instanceId":"i-0123456789abcdef0"}`

func TestMetadataThatIsNoAnswerIsAnError(t *testing.T) {
	good := says(http.StatusOK, "token")
	for name, row := range map[string]struct {
		token, document http.HandlerFunc
		want            string
	}{
		"no session tokens":   {says(http.StatusNotFound, ""), says(http.StatusOK, document), "token"},
		"tokens are denied":   {says(http.StatusForbidden, ""), says(http.StatusOK, document), "token"},
		"an empty token":      {says(http.StatusOK, ""), says(http.StatusOK, document), "session token: empty"},
		"an empty document":   {good, says(http.StatusOK, ""), "empty"},
		"no document":         {good, says(http.StatusNotFound, "<html>"), "404"},
		"over 64 KiB":         {good, says(http.StatusOK, strings.Repeat(" ", boxid.MaxBody+1)), "over 65536 bytes"},
		"a token over 64 KiB": {says(http.StatusOK, strings.Repeat("t", boxid.MaxBody+1)), says(http.StatusOK, document), "over 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := metadata(t, row.token, row.document).Document(t.Context())
			require.ErrorContains(t, err, row.want)
		})
	}
}

func TestADocumentThatNamesNobodyIsAnError(t *testing.T) {
	for _, body := range []string{`{}`, `[]`, `{"accountId":"1","region":"r"}`, `{"accountId":"1","instanceId":"i"}`,
		`{"region":"r","instanceId":"i"}`, document[:20]} {
		_, err := metadata(t, says(http.StatusOK, "token"), says(http.StatusOK, body)).Cloud(t.Context())
		require.Error(t, err, body)
	}
	own, err := metadata(t, says(http.StatusOK, "token"), says(http.StatusOK, document)).Cloud(t.Context())
	require.NoError(t, err)
	require.Equal(t, boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-0123456789abcdef0"}, own)
}

func TestTheDocumentsExactBytesAreReturned(t *testing.T) {
	odd := " \r\n" + document + "\n\n"
	got, err := metadata(t, says(http.StatusOK, "token"), says(http.StatusOK, odd)).Document(t.Context())
	require.NoError(t, err)
	require.Equal(t, odd, string(got))
}

func TestAnUnreachableServiceIsAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := imds.New(server.URL).Document(t.Context())
	require.ErrorContains(t, err, "refused")

	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = metadata(t, hang, hang).Document(ctx)
	require.ErrorContains(t, err, context.DeadlineExceeded.Error()) // the SDK breaks the chain
}
