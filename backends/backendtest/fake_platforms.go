package backendtest

import "hamr/backends"

// How runtimes differ from CUDA: several vendors' in one process, one that must be called on one thread, events that
// producers of work hand out.

// copyThroughHost copies between two such devices, after what the stream holds.
func (f *fakeMemory) copyThroughHost(to, from memory, s *fakeStream) error {
	f.finish(s)
	if err := s.takeError(); err != nil {
		return err
	}
	f.onBlock(to.block, "copy", func() {
		f.onBlock(from.block, "copy", func() { copy(to.bytes(), from.bytes()) })
	})
	return nil
}

// Reaches is true of managed memory of the same platform, and of what FakeOptions.Knows says.
func (f *fakeMemory) Reaches(device int, at backends.Region) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Reaches", "device %d, %s", device, describe(at)); err != nil {
		return false, err
	}
	if err := f.checkDevice("Reaches", device); err != nil {
		return false, err
	}
	if at.Allocator.Backend() != f.Name() {
		return f.options.Knows != nil && f.options.Knows(device, at), nil
	}
	return at.Allocator.Kind() == backends.Managed && f.platform(device) == f.platform(max(at.Device, 0)), nil
}
