package queues

import (
	"time"

	"hamr/backends"
)

const (
	// How long Idle waits for a marker on a queue without known work, and on one with some.
	patience, briefly = 20 * time.Millisecond, 100 * time.Microsecond
	pause             = 20 * time.Microsecond
)

// Streams implements backends.Streams, backends.EventAdopter and backends.Timer with Queues. A backend embeds it.
type Streams struct{ queues *Queues }

// Streams returns the methods of a backend.
func (l *Queues) Streams() Streams { return Streams{l} }

// Resolve returns a device's default queue for zero. Threads have no queues.
func (s Streams) Resolve(device int, stream backends.Stream) (backends.Stream, error) {
	q, err := s.queues.On("Resolve", device, stream)
	if err != nil {
		return 0, err
	}
	return q.Stream, nil
}

// StreamDevice asks the runtime about queues that somebody else made. For the address of something else that looks
// like a queue, the result is undefined.
func (s Streams) StreamDevice(stream backends.Stream) (int, error) {
	if stream == 0 {
		return backends.HostDevice, nil
	}
	q, err := s.queues.Of("StreamDevice", stream)
	if err != nil {
		return 0, err
	}
	return q.Device, nil
}

// NewStream returns a queue that keeps its order and, where the device can, the times of its events.
func (s Streams) NewStream(device int) (backends.Stream, error) {
	if _, err := s.queues.runtime.Default("NewStream", device); err != nil {
		return 0, err
	}
	q, err := s.queues.runtime.Create(device)
	if err != nil {
		return 0, err
	}
	return q.Stream, nil
}

// DestroyStream drops hamr's reference. Others may have their own, and work on the queue is still done.
func (s Streams) DestroyStream(device int, stream backends.Stream) error {
	q, err := s.queues.On("DestroyStream", device, stream)
	if err != nil {
		return err
	}
	s.queues.Forget(stream)
	q.mutex.Lock()
	s.queues.dropMarker(q)
	q.mutex.Unlock()
	return s.queues.runtime.Release(q.Handle())
}

// Synchronize blocks until all work on the queue is over.
func (s Streams) Synchronize(device int, stream backends.Stream) error {
	q, err := s.queues.On("Synchronize", device, stream)
	if err != nil {
		return err
	}
	return s.queues.Finish(q)
}

// Idle asks a marker, since the runtime tells nothing about queues. On an idle queue a marker is over in no time. A
// marker that takes longer shows only that the queue is not idle.
func (s Streams) Idle(device int, stream backends.Stream) (bool, error) {
	l := s.queues
	q, err := l.On("Idle", device, stream)
	if err != nil {
		return false, err
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if over, err := l.passed(q); err != nil || !over {
		return false, err
	}
	wait := patience
	if q.behind = q.given.Load(); q.seen.Load() < q.behind {
		wait = briefly
	}
	if q.marker, err = l.runtime.Mark(q.Handle()); err != nil {
		return false, err
	}
	for begun := time.Now(); ; time.Sleep(pause) {
		over, err := l.passed(q)
		if err != nil {
			return false, err
		}
		if over || time.Since(begun) > wait {
			return over, l.runtime.Late()
		}
	}
}

// passed reports whether a queue's marker is over, and drops it then. The queue's mutex is held.
func (l *Queues) passed(q *Queue) (bool, error) {
	if q.marker == 0 {
		return true, nil
	}
	status, err := l.runtime.Status(q.marker)
	if err == nil && status > Complete {
		return false, nil
	}
	l.dropMarker(q)
	if err == nil && status < Complete {
		err = l.runtime.Failed(status, true)
	}
	q.saw(q.behind)
	return err == nil, err
}

func (l *Queues) dropMarker(q *Queue) {
	l.drop(q.marker)
	q.marker = 0
}
