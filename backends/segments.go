package backends

// Segment is memory as a runtime gave it to a pool, which lends pieces of it.
type Segment struct {
	Allocator Allocator
	Device    int
	Address   Address
	Size      int
	Blocks    []SegmentBlock // by address, without gaps
}

// SegmentBlock is a piece of a Segment.
type SegmentBlock struct {
	Address Address
	Size    int
	Lent    bool // somebody has it; else it is kept for reuse
}

// SegmentReporter is implemented by backends whose pools can tell how their memory is divided.
type SegmentReporter interface {
	// Segments returns what the pools have. Unlike other methods it may be called before Probe.
	Segments() []Segment
}
