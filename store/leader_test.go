package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/store/internal/protocol"
	"hamr/store/internal/server"
	"hamr/store/internal/wire"
)

// TestWhatFollowsASealIsLearnedByItself asks for requests in vain after most of them, and not after seals.
func TestWhatFollowsASealIsLearnedByItself(t *testing.T) {
	spinning(t, true)
	s := answering(t)
	l := &server.Leader{Server: s, Usually: wire.Spinner{Skips: 3, Skipped: 3}}
	c := &server.Conversation{Server: s, Transport: silent{}, Leader: l, Hang: func() {}}
	require.NoError(t, c.Handle(greeting(), nil))
	assert.False(t, l.Sealed)
	var e protocol.Encoder
	at := e.Begin(protocol.OpCreate, 0, 2)
	e.Bytes = append(e.Bytes, seedFrames()[0][protocol.HeaderBytes:]...)
	e.End(at)
	require.NoError(t, c.Handle(e.Bytes, nil))
	assert.False(t, l.Sealed)
	s.Mu.Lock()
	var id ID
	for its := range s.Objects {
		id = its
	}
	s.Mu.Unlock()
	e.Bytes = e.Bytes[:0]
	at = e.Begin(protocol.OpSeal, 0, 3)
	e.ID(id)
	e.End(at)
	require.NoError(t, c.Handle(e.Bytes, nil))
	assert.True(t, l.Sealed)
	s.Leave(c, nil)
}
