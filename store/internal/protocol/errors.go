package protocol

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// ErrClosed is returned by every use of a Client, Builder or Object after its end.
var ErrClosed = errors.New("it was closed")

// ArgumentError names an argument, the value it had and what would have been accepted.
type ArgumentError struct{ Argument, Value, Accepted string }

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("%s is %s: accepted is %s", e.Argument, e.Value, e.Accepted)
}

// NotFoundError says that there is no object of an id, or none that has a name.
type NotFoundError struct {
	ID   ID
	Name string // where a name was asked for
}

func (e *NotFoundError) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("no object has the name %q", e.Name)
	}
	return fmt.Sprintf("there is no object %s", e.ID)
}

// NotSealedError says that an object's maker has not sealed it.
type NotSealedError struct{ ID ID }

func (e *NotSealedError) Error() string {
	return fmt.Sprintf("object %s is not sealed: its maker may still write to it", e.ID)
}

// SealedError says that an object was sealed, and is what it is for good.
type SealedError struct{ ID ID }

func (e *SealedError) Error() string { return fmt.Sprintf("object %s is sealed", e.ID) }

// DeletedError says that an object was deleted before its maker sealed it.
type DeletedError struct{ ID ID }

func (e *DeletedError) Error() string { return fmt.Sprintf("object %s was deleted", e.ID) }

// NameTakenError says that a name is another object's.
type NameTakenError struct {
	Name string
	ID   ID // whose it is
}

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("the name %q is that of object %s", e.Name, e.ID)
}

// Holder is a process and the bytes that are kept for it: of objects that it has leases of or has
// not sealed yet.
type Holder struct {
	Process int
	Bytes   int64
}

// LargeFrom is how many bytes an object has at least that has memory of its own.
const LargeFrom = 64 << 10

// What a FullError names as the memory where there are too few descriptors or connections.
const (
	MemoryDescriptors = "descriptors"
	MemoryConnections = "connections"
)

// FullError says that there is no room for an object: what could be evicted was not enough.
type FullError struct {
	// Memory is "host", a device's UUID or "table", which is what is known of objects. Numbers are of bytes then. It may
	// also be "descriptors" of memory, or "connections".
	Memory  string
	Needed  int64 // bytes
	Limit   int64
	Used    int64
	Holders []Holder // the one with most bytes first, at most 16
}

func (e *FullError) Error() string {
	var b strings.Builder
	if e.Memory == MemoryDescriptors {
		return fmt.Sprintf("the store is full: its process can open %d file descriptors (RLIMIT_NOFILE, ulimit -n), "+
			"and has %d of memory: each object of %d KiB and more has one, and so has each block of smaller ones",
			e.Limit, e.Used, LargeFrom>>10)
	}
	if e.Memory == MemoryConnections {
		return fmt.Sprintf("the store is full: it has as many connections as it may have, %d: close others first", e.Limit)
	}
	fmt.Fprintf(&b, "the store is full: %d bytes are needed, and %d of %d are in use (%s)",
		e.Needed, e.Used, e.Limit, e.Memory)
	switch {
	case e.Needed > e.Limit:
		b.WriteString("; that never fits: the limit is less")
	case e.Memory == "table":
		b.WriteString("; each object has an entry there until it is deleted")
	default:
		b.WriteString("; nothing more may go: an object goes if no process has it, it is not pinned and it was made " +
			"evictable, which a server that spills to files (--spill) does not ask for")
	}
	for i, h := range e.Holders {
		if i == 0 {
			b.WriteString("; held by")
		}
		fmt.Fprintf(&b, " process %d: %d bytes", h.Process, h.Bytes)
		if i < len(e.Holders)-1 {
			b.WriteByte(',')
		}
	}
	return b.String()
}

// LostError says that the server has ended, or does not answer at its path. What a client has
// mapped stays.
type LostError struct {
	Path   string
	Reason error
}

func (e *LostError) Error() string {
	if errors.Is(e.Reason, syscall.ENOENT) || errors.Is(e.Reason, syscall.ECONNREFUSED) {
		return fmt.Sprintf("no store at %s: %v; hamr store serve starts one", e.Path, e.Reason)
	}
	return fmt.Sprintf("the store at %s is lost: %v", e.Path, e.Reason)
}

// Unwrap returns the system's error.
func (e *LostError) Unwrap() error { return e.Reason }

// ProtocolError says that the other side has sent what the wire format does not allow.
type ProtocolError struct{ Problem string }

func (e *ProtocolError) Error() string { return "the store's protocol was broken: " + e.Problem }

// RefusedError says why a server or a client does not deal with the other side, or a path.
type RefusedError struct{ Path, Reason string }

func (e *RefusedError) Error() string { return e.Path + ": " + e.Reason }

// SystemError says what failed at the server: a system call, as for want of descriptors or of
// room on a disk.
type SystemError struct{ Problem string }

func (e *SystemError) Error() string { return "the store: " + e.Problem }
