package gobuffer

import (
	"errors"
	"math"

	"hamr/backends"
	"hamr/backends/waiting"
)

// stopWith is what ends a movement between two pieces before its time; nil: nothing does.
func (p piece) stopWith(q piece) *backends.Stop {
	if p.stop != nil {
		return p.stop
	}
	return q.stop
}

// copyUntil is the backend's Copy until stop asks, where the backend can do that.
func (m *Memory) copyUntil(stop *backends.Stop, dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	if stop != nil {
		if stop.Asked() {
			return backends.Complete, backends.ErrStopped
		}
		if able := m.stopper(); able != nil {
			return able.CopyUntil(stop, dst, src, size, s)
		}
	}
	return m.backend.Copy(dst, src, size, s)
}

// stopper is nil where the backend's copies cannot be stopped.
func (m *Memory) stopper() backends.Stopper {
	able, _ := backends.As[backends.Stopper](m.backend)
	return able
}

// waitUntil is wait until stop asks. Without a stop it does nothing: then nobody minds how long
// whoever comes next takes.
func (w *work) waitUntil(stop *backends.Stop) error {
	if stop == nil {
		return nil
	}
	var pauses waiting.Pauses
	defer pauses.End()
	for {
		idle, err := w.idle()
		if idle || errors.Is(err, backends.ErrCapturing) {
			return nil
		}
		if err != nil {
			return err
		}
		//mutate:never a wait does not end when it is asked to
		if stop.Asked() {
			return backends.ErrStopped
		}
		pauses.Next(math.MaxInt64)
	}
}

// Pending reports whether something is seen to be pending on the elements, or on the Array's stream,
// without waiting: whoever waits for them may wait for long. The error is that of work which is over.
func (a *Array) Pending() (busy bool, failed error) {
	if err := a.check(); err != nil || a.memory == nil || a.memory.streams == nil && a.memory.uses.idle() {
		return false, err
	}
	p := a.all()
	pending := p.pending()
	defer func() { failed = errors.Join(failed, pending.letGo()) }()
	for _, w := range pending {
		if busy, err := w.pending(); busy || err != nil {
			return busy, err
		}
	}
	if !p.hasStream() {
		return false, nil
	}
	own, err := p.work()
	if err != nil || pending.cover(own) {
		return false, err
	}
	return own.pending()
}

// pending is not idle, but for what cannot be asked.
func (w *work) pending() (bool, error) {
	idle, err := w.idle()
	if errors.Is(err, backends.ErrCapturing) {
		return false, nil
	}
	return !idle && err == nil, err
}
