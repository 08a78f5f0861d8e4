package bridge

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/store"
)

// TestMetadataThatCannotBeRead spoils no list.
func TestMetadataThatCannotBeRead(t *testing.T) {
	for metadata, problem := range map[string]bool{"": false, `{"a":1}`: false, "\"\xff\"": true, `"\ud800"`: true, "{": true} {
		text, err := json.Marshal([]any{storeInfo(store.Info{Metadata: []byte(metadata)})})
		require.NoError(t, err)
		var told []struct {
			Metadata any
			Problem  string
		}
		require.NoError(t, json.Unmarshal(text, &told))
		assert.Equal(t, problem, told[0].Problem != "", metadata)
		assert.Equal(t, metadata == `{"a":1}`, told[0].Metadata != nil, metadata)
	}
}
