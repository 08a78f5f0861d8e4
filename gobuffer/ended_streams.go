package gobuffer

import (
	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// coverByDevice makes the last release wait for the device where it would have to ask a stream that may have
// ended. The stream that a release is itself ordered on has not, as callers see to.
func (m *Memory) coverByDevice() {
	if m.streams == nil || m.every.Load() || m.region.Address == 0 || !(m.freedInStreamOrder() || m.settled) {
		return
	}
	byDriver := m.taker != nil || m.region.Allocator.Ordered()
	if !byDriver && !order.Stays(m.backend, m.ordered()) || m.uses.AsksEnded(byDriver, m.backend, m.context(), m.ordered()) {
		m.every.Store(true)
	}
}

// dropsLast reports whether p, which is let go, is the last that has its memory, and names a stream that may
// have ended: the device is then waited for in its place.
func (m *Memory) dropsLast(s backends.Stream) bool {
	return m.streams != nil && m.ends() && m.refs.Load() == 1 && !order.Stays(m.backend, s)
}

// rememberRest records that work on s, which may have ended, may still touch page-locked memory: it asks no
// runtime, as only a stream that lives can say of which device it is.
func (m *Memory) rememberRest(s backends.Stream) {
	w := &order.Work{Backend: m.backend, Streams: m.streams, Device: m.deviceOfUse(), Stream: s, Foreign: true}
	_ = m.uses.RestInstead(w) // such tickets hold nothing
}

// whereIs is the device, plus one, of a stream that may end, which only the stream can say while it lives; else 0.
func (m *Memory) whereIs(s backends.Stream) int {
	if m == nil || m.kind != backends.Pinned || m.streams == nil || order.Stays(m.backend, s) {
		return 0
	}
	device, err := m.streams.StreamDevice(s)
	if err != nil {
		return 0
	}
	return device + 1
}

// rememberEnding is remember by who names a stream that may have ended, for page-locked memory.
func (m *Memory) rememberEnding(s backends.Stream, where int) {
	if where == 0 {
		m.rememberRest(s)
		return
	}
	m.remember(&order.Work{Backend: m.backend, Streams: m.streams, Device: where - 1, Stream: s})
}
