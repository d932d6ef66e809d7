package simcloud_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/simcloud"
)

func request(t *testing.T, method, url string, header ...string) (int, string) {
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

const (
	token = "X-aws-ec2-metadata-token"
	ttl   = "X-aws-ec2-metadata-token-ttl-seconds"
)

func TestMetadataIsServedForATokenOnly(t *testing.T) {
	cloud, now := newCloud(t, simcloud.Config{})
	i := launch(t, cloud)
	other := launch(t, cloud)

	for _, bad := range []string{"", "0", "-1", "21601", "soon"} {
		status, _ := request(t, "PUT", i.IMDS+"/latest/api/token", ttl, bad)
		require.Equal(t, http.StatusBadRequest, status, "ttl %q", bad)
	}
	status, _ := request(t, "PUT", i.IMDS+"/latest/api/token", ttl, "60", "X-Forwarded-For", "10.0.0.1")
	require.Equal(t, http.StatusForbidden, status)

	status, good := request(t, "PUT", i.IMDS+"/latest/api/token", ttl, "60")
	require.Equal(t, http.StatusOK, status)
	_, foreign := request(t, "PUT", other.IMDS+"/latest/api/token", ttl, "60")

	url := i.IMDS + "/latest/meta-data/instance-id"
	for _, bad := range []string{"", "x", foreign, good[:len(good)-4] + "AAA="} {
		status, _ = request(t, "GET", url, token, bad)
		require.Equal(t, http.StatusUnauthorized, status, "token %q", bad)
	}
	status, body := request(t, "GET", url, token, good)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, i.ID, body)
	status, _ = request(t, "GET", i.IMDS+"/latest/nothing", token, good)
	require.Equal(t, http.StatusNotFound, status)

	*now = now.Add(time.Minute)
	status, _ = request(t, "GET", url, token, good)
	require.Equal(t, http.StatusUnauthorized, status, "a token ends")
}

func TestTheSignedDocumentIsServedAsAWSServesIt(t *testing.T) {
	dir := t.TempDir()
	cloud, err := simcloud.New(simcloud.Config{CertDir: dir})
	require.NoError(t, err)
	t.Cleanup(cloud.Close)
	i, err := cloud.Launch("eu-west-1", "999900001111")
	require.NoError(t, err)

	_, good := request(t, "PUT", i.IMDS+"/latest/api/token", ttl, "60")
	_, document := request(t, "GET", i.IMDS+"/latest/dynamic/instance-identity/document", token, good)
	_, signature := request(t, "GET", i.IMDS+"/latest/dynamic/instance-identity/signature", token, good)

	require.True(t, strings.HasSuffix(document, "\n}"), "the document ends without a line feed")
	lines := strings.Split(signature, "\n")
	require.Greater(t, len(lines), 1)
	for _, line := range lines[:len(lines)-1] {
		require.Len(t, line, 76)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Join(lines, ""))
	require.NoError(t, err)

	file, err := os.ReadFile(filepath.Join(dir, "eu-west-1.pem"))
	require.NoError(t, err)
	block, _ := pem.Decode(file)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.NoError(t, cert.CheckSignature(x509.SHA256WithRSA, []byte(document), raw))

	who, err := boxid.ParseDocument([]byte(document))
	require.NoError(t, err)
	require.Equal(t, boxid.Cloud{Provider: boxid.AWS, Account: "999900001111", Region: "eu-west-1", InstanceID: i.ID}, who)
}
