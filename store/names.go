package store

import "hamr/store/internal/protocol"

// ErrClosed is returned by every use of a Client, Builder or Object after its end.
var ErrClosed = protocol.ErrClosed

// ID names an object: 16 random bytes, of which no server makes the same twice.
type ID = protocol.ID

// ParseID reads what ID.String returns.
func ParseID(text string) (ID, error) { return protocol.ParseID(text) }

// The errors of this package: see their fields for what they name.
type (
	ArgumentError  = protocol.ArgumentError
	DeletedError   = protocol.DeletedError
	FullError      = protocol.FullError
	LostError      = protocol.LostError
	NameTakenError = protocol.NameTakenError
	NotFoundError  = protocol.NotFoundError
	NotSealedError = protocol.NotSealedError
	ProtocolError  = protocol.ProtocolError
	RefusedError   = protocol.RefusedError
	SealedError    = protocol.SealedError
	SystemError    = protocol.SystemError
)

// Holder is a process and the bytes that are kept for it: of objects that it has leases of or has
// not sealed yet.
type Holder = protocol.Holder
