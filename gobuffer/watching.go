package gobuffer

import "hash/maphash"

var watchSeed = maphash.MakeSeed()

func (m *Memory) digest() uint64 {
	return maphash.Bytes(watchSeed, hostBytes(m.region.Address, m.Size()))
}

// watch makes the release of a temporary on the host trace that it was written to: that is
// lost, and the handle is gone that could have said so.
func (m *Memory) watch() {
	if m.Size() > 0 && m.onHost {
		now := m.digest()
		m.watched = &now
	}
}

func (m *Memory) tellWritten() {
	if m.watched != nil && *m.watched != m.digest() {
		m.runtime.tracef("what was written to the temporary at %#x is dropped: on_host (OnHost) writes back",
			m.region.Address)
	}
}
