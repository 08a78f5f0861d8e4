package backendtest

import "hamr/backends"

// CopyBatch queues the copies, the last one first. Each is a call of Copy, too, which may fail
// after others were queued.
func (f *fakeMemory) CopyBatch(copies []backends.BatchCopy, s backends.Stream) (all backends.Progress, err error) {
	f.onThread(func() { all, err = f.copyBatch(copies, s) })
	return all, err
}

func (f *fakeMemory) copyBatch(copies []backends.BatchCopy, s backends.Stream) (all backends.Progress, err error) {
	if err := f.enter("CopyBatch", "%d copies, stream %#x", len(copies), s); err != nil {
		return backends.Complete, err
	}
	if err := f.checkBatch(copies); err != nil {
		return backends.Complete, err
	}
	for i := len(copies) - 1; i >= 0; i-- {
		left, err := f.copy(copies[i].Dst, copies[i].Src, copies[i].Size, s)
		if all |= left; err != nil {
			return all, err
		}
	}
	return all, nil
}

func (f *fakeMemory) checkBatch(copies []backends.BatchCopy) error {
	if len(copies) == 0 {
		return f.violate("CopyBatch", "no copies")
	}
	alike := func(a, b backends.Region) bool {
		return a.Allocator.Kind() == b.Allocator.Kind() && a.Device == b.Device
	}
	overlap := func(a backends.Region, size int, b backends.Region, other int) bool {
		return int(a.Address) < int(b.Address)+other && int(b.Address) < int(a.Address)+size
	}
	for i, c := range copies {
		if !alike(c.Dst, copies[0].Dst) || !alike(c.Src, copies[0].Src) {
			return f.violate("CopyBatch", "copy %d, %s from %s, is of another kind", i, describe(c.Dst), describe(c.Src))
		}
		for j, d := range copies {
			if i != j && overlap(c.Dst, c.Size, d.Dst, d.Size) || overlap(c.Dst, c.Size, d.Src, d.Size) {
				return f.violate("CopyBatch", "copies %d and %d depend on each other", i, j)
			}
		}
	}
	return nil
}
