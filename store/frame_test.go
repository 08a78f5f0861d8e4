package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// TestWhoDoesNotRead sends requests and reads no replies: that connection ends, others go on.
func TestWhoDoesNotRead(t *testing.T) {
	s := startServer(t, ServerOptions{})
	socket, err := wire.Dial(s.Path())
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, socket.Send(hello(t), nil))
	var e protocol.Encoder
	at := e.Begin(protocol.OpStatistics, 0, 2)
	e.End(at)
	for range 1_000_000 {
		if err = socket.Send(e.Bytes, nil); err != nil {
			break
		}
	}
	assert.True(t, errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET), "%v", err)
	makeObject(t, newClient(t, s), bytesOf(10), 1)
}

func TestErrorsTravel(t *testing.T) {
	for _, sent := range []error{
		&ArgumentError{Argument: "a", Value: "b", Accepted: "c"}, &NotFoundError{ID: ID{1}, Name: "n"},
		&NotSealedError{ID: ID{2}}, &SealedError{ID: ID{3}}, &DeletedError{ID: ID{4}},
		&NameTakenError{Name: "n", ID: ID{5}}, &FullError{Memory: "host", Needed: 1, Limit: 2, Used: 3,
			Holders: []Holder{{Process: 4, Bytes: 5}, {Process: 6, Bytes: 7}}}, &ProtocolError{Problem: "p"},
		&SystemError{Problem: "s"},
		&RefusedError{Path: "the store", Reason: "r"},
	} {
		var e protocol.Encoder
		status := protocol.EncodeError(&e, sent)
		assert.Equal(t, sent, protocol.DecodeError(status, &protocol.Decoder{Rest: e.Bytes}))
	}
}
