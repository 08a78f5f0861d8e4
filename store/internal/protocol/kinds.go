package protocol

// EventKind is what has happened to an object.
type EventKind uint8

// The kinds of events.
const (
	Created EventKind = 1 + iota
	Sealed
	Deleted // by a client, or because its maker ended without sealing it
	Evicted
	Spilled
	Restored
	Named
	Unnamed
	// Missed says that so many events were more than a client has asked for in time.
	Missed
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	names := [...]string{
		"none", "created", "sealed", "deleted", "evicted", "spilled", "restored", "named", "unnamed", "missed",
	}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is something that has happened to an object.
type Event struct {
	Kind   EventKind
	ID     ID
	Name   string // of Named and Unnamed
	Missed int64  // of Missed
}
