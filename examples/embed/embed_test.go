package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be a box, as the program starts itself as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && (os.Args[1] == "box-a" || os.Args[1] == "box-b") {
		main()
		return
	}
	os.Exit(m.Run())
}

const story = `box-a holds job.demo.example as session 1
box-b is refused: hostclaim: job.demo.example: not legal in this state: no evidence that box-a is gone
box-a ended its session and its process ended: an operator declares it lost
box-b holds job.demo.example as session 3
box-a is refused: hostclaim: job.demo.example: not legal in this state: box-a is lost for this host
the claim: 2 sessions one after the other, executor box-b, 0 losses declared
`

func TestAHostIsHandedOver(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), &out, nil))
	require.Equal(t, story, out.String())
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
	requireInReadme(t, "$ go run ./examples/embed\n"+story)
}

func TestTheProgramIsShortAndStandsInTheReadme(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(program, []byte("\n")), 80)
	begins := bytes.Index(program, []byte("// box takes"))
	ends := bytes.Index(program, []byte("\nfunc create"))
	require.True(t, 0 < begins && begins < ends)
	requireInReadme(t, "```go\n"+string(program[begins:ends])+"```\n")
}

func requireInReadme(t *testing.T, text string) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), text)
}
