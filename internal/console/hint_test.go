package console_test

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
)

func TestADrainIsToldToTheWorkersOfTheRegion(t *testing.T) {
	d := serving(t)
	d.join(t, "worker-1", "i-0008")
	d.publish(t, "worker-1", placement.CapabilityWorker)
	var told []hint.Hint
	var where []string
	d.Hint = func(_ context.Context, h hint.Hint, addrs []string) { told, where = append(told, h), addrs }
	require.NoError(t, d.DrainBox(t.Context(), "box-1"))
	require.Equal(t, []hint.Hint{{V: 1, Box: "box-1"}}, told)
	require.Equal(t, []string{"worker-1.internal:81"}, where)

	d.mem.Inject(memstore.Once(memstore.OpList, "control/edges/", memstore.Lose))
	require.NoError(t, d.DrainBox(t.Context(), "box-1"), "they find out on their sweep")
	require.Len(t, told, 1)
}

// TestTheDrainCommandBringsTheHint runs the command against a worker's listener.
func TestTheDrainCommandBringsTheHint(t *testing.T) {
	dir := t.TempDir()
	w := &world{dir: dir}
	control := "dir://" + filepath.Join(dir, "control")
	app := console.App{Stdout: t.Output(), Stderr: t.Output(), Now: w.now, Open: open}
	run := func(args ...string) {
		require.NoError(t, app.Run(t.Context(), append([]string{"--config", filepath.Join(dir, "keys", "console.yaml")}, args...)))
	}
	require.NoError(t, app.Run(t.Context(), []string{"init", "--control", control, "--data", control, "--region", "ie",
		"--account", "123456789012", "--aws-region", "eu-west-1", "--out", filepath.Join(dir, "keys")}))
	require.NoError(t, w.certs())
	for ref, instance := range map[string]string{"box-1": "i-0001", "worker-1": "i-0002"} {
		require.NoError(t, w.publish([]string{ref, instance}))
		run("box", "enroll", ref, "--instance-id", instance, "--identity-certs", filepath.Join(dir, "certs"))
	}
	secret, err := boxauth.LoadSecret(filepath.Join(dir, "keys", "secret"), nil)
	require.NoError(t, err)
	got := make(chan hint.Hint, 1)
	listener := httptest.NewServer(hint.Handler(&boxauth.Verifier{Secret: secret}, func(h hint.Hint) { got <- h }))
	defer listener.Close()
	_, err = placement.Publish(t.Context(), w.store(), placement.Published{}, placement.Edges{Box: "worker-1", Region: "ie",
		Internal: strings.TrimPrefix(listener.URL, "http://"), Capabilities: []string{placement.CapabilityWorker}, At: w.now()})
	require.NoError(t, err)
	run("box", "drain", "box-1")
	require.Equal(t, hint.Hint{V: 1, Box: "box-1"}, <-got)
}
