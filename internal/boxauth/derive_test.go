package boxauth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/boxauth"
)

func TestADerivedSecretIsOfItsPurposeAndSecretAlone(t *testing.T) {
	a, b := boxauth.NewSecret(), boxauth.NewSecret()
	require.Equal(t, a.Derive("ingress"), a.Derive("ingress"))
	require.NotEqual(t, a.Derive("ingress"), a.Derive("other"))
	require.NotEqual(t, a.Derive("ingress"), b.Derive("ingress"))
	require.NotContains(t, a.Derive("ingress"), a.Fingerprint())
}
