package store

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAFullStoreSaysWhyNothingGoes(t *testing.T) {
	for text, e := range map[string]*FullError{
		"an object goes if no process has it, it is not pinned and it was made evictable": {Memory: "host", Needed: 1,
			Limit: 4, Used: 4},
		"; held by process 7: 4 bytes": {Memory: "host", Needed: 1, Limit: 4, Used: 4,
			Holders: []Holder{{Process: 7, Bytes: 4}}},
		"that never fits":     {Memory: "host", Needed: 5, Limit: 4},
		"until it is deleted": {Memory: "table", Needed: 1, Limit: 4, Used: 4},
	} {
		assert.ErrorContains(t, e, text)
	}
}

func TestAPathWithoutAStoreSaysHowToStartOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	_, err := Connect(background, path, newRuntime(t))
	assert.EqualError(t, err, "no store at "+path+": no such file or directory; hamr store serve starts one")
	assert.ErrorIs(t, err, syscall.ENOENT)
	assert.ErrorContains(t, &LostError{Path: path, Reason: syscall.EPIPE}, "the store at "+path+" is lost")
}
