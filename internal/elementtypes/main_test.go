package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGeneratedFilesAreOfTheTable(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile("../../" + name)
		require.NoError(t, err)
		require.Equal(t, want, string(got), "%s: run go generate ./arrayiface", name)
	}
}
