package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatFollowsASealIsLearnedByItself asks for requests in vain after most of them, and not after seals.
func TestWhatFollowsASealIsLearnedByItself(t *testing.T) {
	spinning(t, true)
	s := answering(t)
	l := &leader{server: s, usually: spinner{skips: 3, skipped: 3}}
	c := &conversation{server: s, transport: silent{}, leader: l, hang: func() {}}
	require.NoError(t, c.handle(greeting(), nil))
	assert.False(t, l.sealed)
	var e encoder
	at := e.begin(opCreate, 0, 2)
	e.bytes = append(e.bytes, seedFrames()[0][headerBytes:]...)
	e.end(at)
	require.NoError(t, c.handle(e.bytes, nil))
	assert.False(t, l.sealed)
	s.mu.Lock()
	var id ID
	for its := range s.objects {
		id = its
	}
	s.mu.Unlock()
	e.bytes = e.bytes[:0]
	at = e.begin(opSeal, 0, 3)
	e.id(id)
	e.end(at)
	require.NoError(t, c.handle(e.bytes, nil))
	assert.True(t, l.sealed)
	s.leave(c, nil)
}
