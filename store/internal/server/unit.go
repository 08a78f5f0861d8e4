package server

import (
	"hamr/backends"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// unit is memory that is counted, evicted and spilled as a whole: that of one object, or a slab of
// small ones. The server's lock guards it.
type unit struct {
	id       protocol.ID
	domain   *domain
	size     int64 // bytes, as counted
	places   []*object
	each     int64   // bytes from one place to the next
	free     []int32 // places that have no object
	objects  int
	blockers int // objects for which it may not leave memory now
	keepers  int // objects that may be spilled, and not evicted
	writable bool
	// creator is the session that has a slab mapped for writing and whose new objects go there.
	creator    *session
	knownBy    map[*session]struct{} // sessions that have a slab, or may have
	idle       entry                 // among what may leave memory
	goes       entry                 // among what may be evicted
	gone       bool                  // no object will be in it again
	forced     bool                  // counted as lingering
	Descriptor *wire.Descriptor
	Spilled    *spilledFile
	replaced   bool // it was brought back, as other memory
	Moving     bool // being written to or read from a file, without the lock
}

// domain is memory with a limit of its own: the host's, or a device's.
type domain struct {
	device    backends.UUID // zero is the host
	name      string
	limit     int64
	used      int64
	peak      int64
	lingering int64 // deleted by force, or a slab that a client has not let go of
	spills    bool
	idle      queue  // what may be evicted or spilled
	goes      queue  // what may be evicted
	files     *queue // what may be evicted of all that is in files, whatever memory it was in
	leaving   int64  // bytes that are being spilled
	spilled   int64  // bytes in files
}

func (u *unit) onDevice() bool { return u.domain.device != (backends.UUID{}) }

func (d *domain) count(bytes int64) {
	d.used += bytes
	d.peak = max(d.peak, d.used)
}

// list has the unit stand where it may go from: where it stood, or as the newest.
func (u *unit) list() {
	free := u.blockers == 0 && !u.gone && !u.Moving
	from := &u.domain.goes
	if u.Spilled != nil {
		from = u.domain.files
	}
	u.idle.stand(u, &u.domain.idle, free && u.Spilled == nil)
	u.goes.stand(u, from, free && u.keepers == 0)
}

func (u *unit) touch() {
	u.idle.renew()
	u.goes.renew()
}

const (
	firstSlab = 256 << 10
	mostSlab  = 16 << 20
)

// slabBytes is how large the next slab of a session is that has some for places of a size: small
// at first, and no large part of the limit.
func slabBytes(had int, place, limit int64) int64 {
	bytes := min(int64(firstSlab)<<min(had, 6), mostSlab)
	if limit > 0 {
		bytes = min(bytes, limit/16)
	}
	return protocol.RoundUp(max(bytes, place), protocol.PageSize)
}
