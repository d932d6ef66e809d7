package console

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNobodyIsAskedWhereNoPersonTypes(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	file, err := os.Create(t.TempDir() + "/answers")
	require.NoError(t, err)
	defer file.Close()
	for _, stdin := range []*os.File{r, file} {
		var said bytes.Buffer
		s := session{App: App{Stdin: terminal(stdin), Stderr: &said}}
		_, err = s.ask(t.Context(), "box-1? ")
		require.ErrorIs(t, err, errNobody)
		require.Empty(t, said.String(), "and nothing is read")
	}
}

func TestAQuestionEndsWithItsContext(t *testing.T) {
	stdin, person := io.Pipe()
	defer person.Close()
	var said bytes.Buffer
	s := session{App: App{Stdin: stdin, Stderr: &said}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.ask(ctx, "box-1? ")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "box-1? ", said.String())
}
