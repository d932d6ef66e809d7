package s3test_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/s3test"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

func TestEachStartIsAFreshBucketOfAFitStore(t *testing.T) {
	one, two := s3test.Start(t), s3test.Start(t)
	require.NotEqual(t, one, two)
	for _, url := range []string{one, two} {
		s, err := storeurl.Open(t.Context(), url)
		require.NoError(t, err)
		for info, err := range s.List(t.Context(), "") {
			require.NoError(t, err)
			t.Errorf("a fresh bucket holds %s", info.Key)
		}
		require.NoError(t, storetest.Guard(t.Context(), s))
	}
}
