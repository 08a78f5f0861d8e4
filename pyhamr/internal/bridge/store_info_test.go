package bridge

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"hamr/store"
)

// TestMetadataThatCannotBeRead is told of as a problem, and spoils no list.
func TestMetadataThatCannotBeRead(t *testing.T) {
	for metadata, problem := range map[string]bool{
		"": false, `{"a":1}`: false, "\"\xff\"": true, `"\ud800"`: true, "{": true,
	} {
		assert.Equal(t, problem, ProblemOf(store.Info{Metadata: []byte(metadata)}) != "", metadata)
	}
}
