package protocol

import "hamr/backends"

// Statistics count what a server has, and what it has done since its start.
type Statistics struct {
	Objects  int64
	Unsealed int64
	Names    int64
	Leases   int64
	Sessions int64 // connections that have greeted, those for waiting among them
	Table    int64 // bytes that are reckoned for what is known of objects
	// TableLimit is the most that Table may be.
	TableLimit int64
	Evicted    int64 // objects, since the start
	Spilled    int64 // bytes in files now
	Spills     int64 // since the start
	Restored   int64
	Requests   int64
	Refused    int64 // connections
	Breaches   int64 // connections that ended because they broke the protocol
	// ReadyHits and ReadyMisses count large objects that memory was ready for, and not.
	ReadyHits, ReadyMisses int64
	Memories               []MemoryStatistics
}

// MemoryStatistics count the host's memory or that of a device, in bytes.
type MemoryStatistics struct {
	Name   string        // "host", or the device's UUID
	Device backends.UUID // zero is the host
	Limit  int64         // 0 is none
	Used   int64         // that of slabs and what sizes are rounded up to included
	Peak   int64
	// Lingering is deleted by force and still leased, or in slabs that are gone and which a client
	// has mapped until its next call. It does not count as used.
	Lingering int64
	// Ready is kept for the next large object, and counts as used.
	Ready int64
}

func (t *Statistics) numbers() []*int64 {
	return []*int64{
		&t.Objects, &t.Unsealed, &t.Names, &t.Leases, &t.Sessions, &t.Table, &t.TableLimit, &t.Evicted,
		&t.Spilled, &t.Spills, &t.Restored, &t.Requests, &t.Refused, &t.Breaches,
		&t.ReadyHits, &t.ReadyMisses,
	}
}

func (m *MemoryStatistics) numbers() []*int64 {
	return []*int64{&m.Limit, &m.Used, &m.Peak, &m.Lingering, &m.Ready}
}

// EncodeStatistics appends a server's figures.
func EncodeStatistics(e *Encoder, t Statistics) {
	for _, v := range t.numbers() {
		e.U64(uint64(*v))
	}
	e.U32(uint32(len(t.Memories)))
	for _, m := range t.Memories {
		e.Text(m.Name)
		e.ID(ID(m.Device))
		for _, v := range m.numbers() {
			e.U64(uint64(*v))
		}
	}
}

// DecodeStatistics reads what EncodeStatistics appends.
func DecodeStatistics(d *Decoder) (t Statistics) {
	for _, v := range t.numbers() {
		*v = int64(d.U64())
	}
	for range d.Count(16) {
		m := MemoryStatistics{Name: d.Text()}
		m.Device = [16]byte(d.ID())
		for _, v := range m.numbers() {
			*v = int64(d.U64())
		}
		t.Memories = append(t.Memories, m)
	}
	return t
}
