package all

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"hamr/backends"
)

func TestEachBackendServesAllocatorsAndIsListedOnce(t *testing.T) {
	served := map[string]bool{}
	for _, a := range backends.Allocators() {
		served[a.Backend()] = true
	}
	seen := map[string]bool{}
	for _, b := range New() {
		assert.True(t, served[b.Name()], "no allocator names backend %q", b.Name())
		assert.False(t, seen[b.Name()], "backend %q twice", b.Name())
		seen[b.Name()] = true
	}
	assert.True(t, seen["host"])
}
