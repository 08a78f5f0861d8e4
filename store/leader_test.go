package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// TestWhatFollowsASealIsLearnedByItself asks for requests in vain after most of them, and not after seals.
func TestWhatFollowsASealIsLearnedByItself(t *testing.T) {
	spinning(t, true)
	s := answering(t)
	l := &leader{server: s, usually: wire.Spinner{Skips: 3, Skipped: 3}}
	c := &conversation{server: s, transport: silent{}, leader: l, hang: func() {}}
	require.NoError(t, c.handle(greeting(), nil))
	assert.False(t, l.sealed)
	var e protocol.Encoder
	at := e.Begin(protocol.OpCreate, 0, 2)
	e.Bytes = append(e.Bytes, seedFrames()[0][protocol.HeaderBytes:]...)
	e.End(at)
	require.NoError(t, c.handle(e.Bytes, nil))
	assert.False(t, l.sealed)
	s.mu.Lock()
	var id ID
	for its := range s.objects {
		id = its
	}
	s.mu.Unlock()
	e.Bytes = e.Bytes[:0]
	at = e.Begin(protocol.OpSeal, 0, 3)
	e.ID(id)
	e.End(at)
	require.NoError(t, c.handle(e.Bytes, nil))
	assert.True(t, l.sealed)
	s.leave(c, nil)
}
