//go:build !trial

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheHeaderIsOfTheTable(t *testing.T) {
	got, err := os.ReadFile("../../" + name)
	require.NoError(t, err)
	require.Equal(t, header(), string(got), "run go generate ./backends")
}
