package main

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestTheStubIsOfTheFacade(t *testing.T) {
	got, err := os.ReadFile("../../" + name)
	require.NoError(t, err)
	want, err := stub(os.DirFS("../.."))
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run go generate ./pyhamr")
}

func TestASignatureThatPythonDoesNotHaveIsRefused(t *testing.T) {
	for _, declaration := range []string{
		"func F(list []int) int { return 0 }",
		"func F() (int, string) { return 0, \"\" }",
		"func F() float32 { return 0 }",
	} {
		_, err := stub(fstest.MapFS{folder + "/f.go": {Data: []byte("package pyhamr\n\n" + declaration + "\n")}})
		require.ErrorContains(t, err, "F: ", declaration)
	}
}
