package forked

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Go program cannot fork: its child is played by another number.
func TestMarkIsFoundByAnotherProcessOnly(t *testing.T) {
	read := func() string {
		text, err := os.ReadFile(maps)
		require.NoError(t, err)
		return string(text)
	}
	assert.False(t, inherited(read(), "marked", os.Getpid()+1))
	require.NoError(t, Mark("marked"))
	assert.False(t, Since("marked"), "who has made the mark is no child")
	assert.Equal(t, 1, strings.Count(read(), nameOf("marked")))
	assert.True(t, inherited(read(), "marked", os.Getpid()+1))
	assert.True(t, inherited(read(), "marked", os.Getpid()/10), "a number that the maker's begins with")
	assert.False(t, inherited(read(), "other", os.Getpid()+1))
}
