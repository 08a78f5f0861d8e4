package gobuffer

import "hamr/backends"

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
