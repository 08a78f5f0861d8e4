package store

import (
	"context"
	"sync/atomic"

	"hamr/store/internal/protocol"
	"hamr/store/internal/server"
	"hamr/store/internal/wire"
)

// ServerOptions say where a server listens and what it may hold.
type ServerOptions = server.Options

// Server keeps objects. Its methods may be called from any goroutine.
type Server struct{ server *server.Server }

// Listen returns a server that listens, and has clients wait until Serve is called, a second at the most. It makes the
// socket's directory if there is none, for the user alone, and refuses one that others can enter.
// A socket that a server left behind which has ended is replaced; that of a living one is a
// *RefusedError.
func Listen(o ServerOptions) (*Server, error) {
	s, err := server.Listen(o)
	if err != nil {
		return nil, err
	}
	wire.MakeRoom()
	return &Server{s}, nil
}

// Path returns where the server listens, nothing if it is the zero value.
func (s *Server) Path() string {
	if s.server == nil {
		return ""
	}
	return s.server.Path()
}

// Serve answers clients until ctx is done or Close is called, and then ends all connections. It
// may be called once. The error is that of a socket which accepts no clients any more.
func (s *Server) Serve(ctx context.Context) error { return s.server.Serve(ctx) }

// Close ends the server. What clients have mapped stays theirs.
func (s *Server) Close() error { return s.server.Close() }

// Statistics returns the server's figures.
func (s *Server) Statistics() Statistics { return s.server.Statistics() }

// ErrClosed is returned by every use of a Client, Builder or Object after its end.
var ErrClosed = protocol.ErrClosed

// ID names an object: 16 random bytes, of which no server makes the same twice.
type ID = protocol.ID

// ParseID reads what ID.String returns.
func ParseID(text string) (ID, error) { return protocol.ParseID(text) }

type (
	// ArgumentError names an argument, the value it had and what would have been accepted: Argument, Value, Accepted.
	ArgumentError = protocol.ArgumentError
	// DeletedError says that an object was deleted before its maker sealed it: ID.
	DeletedError = protocol.DeletedError
	// FullError says that there is no room for an object: what could be evicted was not enough. It has Memory, Needed,
	// Limit, Used and Holders.
	FullError = protocol.FullError
	// LostError says that the server has ended, or does not answer at its Path, for a Reason. What a client has
	// mapped stays.
	LostError = protocol.LostError
	// NameTakenError says that a Name is another object's, ID.
	NameTakenError = protocol.NameTakenError
	// NotFoundError says that there is no object of an ID, or none that has a Name.
	NotFoundError = protocol.NotFoundError
	// NotSealedError says that an object's maker has not sealed it: ID.
	NotSealedError = protocol.NotSealedError
	// ProtocolError says that the other side has sent what the wire format does not allow: Problem.
	ProtocolError = protocol.ProtocolError
	// RefusedError says why a server or a client does not deal with the other side, or a path: Path, Reason.
	RefusedError = protocol.RefusedError
	// SealedError says that an object was sealed, and is what it is for good: ID.
	SealedError = protocol.SealedError
	// SystemError says what failed at the server: a system call, as for want of descriptors or of room on a
	// disk: Problem.
	SystemError = protocol.SystemError
)

// Holder is a process and the bytes that are kept for it: of objects that it has leases of or has
// not sealed yet.
type Holder = protocol.Holder

// DescriptorsError says that this process cannot open more descriptors. Nothing else has changed: the session goes on.
type DescriptorsError = wire.DescriptorsError

// DefaultPath is where a server listens, and clients look for it, unless they are told otherwise:
// $HAMR_STORE, else hamr/store.sock in $XDG_RUNTIME_DIR, else store.sock in /tmp/hamr-UID.
func DefaultPath() string { return wire.DefaultPath() }

// DefaultPathBy is DefaultPath by other values of the environment's variables than those that the process started with.
func DefaultPathBy(lookup func(name string) string) string { return wire.DefaultPathBy(lookup) }

// Recorded returns where the words are that tell which descriptors a forked child closes; they never move.
func Recorded() *atomic.Uint64 { return wire.Recorded() }

// Description says what an object is.
type Description = protocol.Description

// Info is what is known of an object without its memory.
type Info = protocol.Info

// CheckMetadata refuses what a server does not take as metadata: what is no JSON, or JSON that some client could not
// read. Nothing at all is accepted.
func CheckMetadata(metadata []byte) error { return protocol.CheckMetadata(metadata) }

// EventKind is what has happened to an object.
type EventKind = protocol.EventKind

// The kinds of events.
const (
	Created  = protocol.Created
	Sealed   = protocol.Sealed
	Deleted  = protocol.Deleted // by a client, or because its maker ended without sealing it
	Evicted  = protocol.Evicted
	Spilled  = protocol.Spilled
	Restored = protocol.Restored
	Named    = protocol.Named
	Unnamed  = protocol.Unnamed
	// Missed says that so many events were more than a client has asked for in time.
	Missed = protocol.Missed
)

// Event is something that has happened to an object.
type Event = protocol.Event

// Statistics count what a server has, and what it has done since its start.
type Statistics = protocol.Statistics

// MemoryStatistics count the host's memory or that of a device, in bytes.
type MemoryStatistics = protocol.MemoryStatistics
