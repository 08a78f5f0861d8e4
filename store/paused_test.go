package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUndoBesideARequestThatWaits has a client undo what it gave up while the server has a request of it wait.
func TestUndoBesideARequestThatWaits(t *testing.T) {
	s, err := newServer(ServerOptions{})
	require.NoError(t, err)
	c := &conversation{server: s, transport: silent{}, hang: func() {}}
	require.NoError(t, c.handle(greeting(), nil))
	packet := func(operation uint16, build func(*encoder)) []byte {
		var e encoder
		at := e.begin(operation, 0, 7)
		build(&e)
		e.end(at)
		return e.bytes
	}
	require.NoError(t, c.handle(packet(opGetName, func(e *encoder) { e.text("nobody's"); e.u64(forever) }), nil))
	require.NotNil(t, c.session.waiting)
	require.NoError(t, c.handle(packet(opUndo, func(e *encoder) { e.u64(7) }), nil))
	require.NotNil(t, c.session.waiting)
	require.Error(t, c.handle(packet(opExists, func(e *encoder) { e.id(newID()) }), nil))
	s.leave(c, nil)
}
