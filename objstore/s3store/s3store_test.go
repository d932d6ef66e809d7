package s3store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/s3test"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) objstore.Store {
		s, err := storeurl.Open(t.Context(), s3test.Start(t))
		require.NoError(t, err)
		return s
	})
}
