package cuda

import "hamr/backends"

// pauseFloor is the floor of the calls that enqueue work on memory: none begins on memory that is paused, and none is
// paused under one.
type pauseFloor struct{ copyFloor }

// Copy is copyFloor's.
func (b *pauseFloor) Copy(dst, src backends.Region, size int, stream backends.Stream) (backends.Progress, error) {
	return b.CopyUntil(nil, dst, src, size, stream)
}

// CopyUntil is copyFloor's.
func (b *pauseFloor) CopyUntil(stop *backends.Stop, dst, src backends.Region, size int,
	stream backends.Stream) (backends.Progress, error) {
	if b.pauses.ever.Load() {
		release, err := b.Hold(dst, src)
		if err != nil {
			return backends.Complete, err
		}
		defer release()
	}
	return b.copyFloor.CopyUntil(stop, dst, src, size, stream)
}

// CopyBatch is copyFloor's.
func (b *pauseFloor) CopyBatch(copies []backends.BatchCopy, stream backends.Stream) (backends.Progress, error) {
	if b.pauses.ever.Load() {
		var regions []backends.Region
		for _, c := range copies {
			regions = append(regions, c.Dst, c.Src)
		}
		release, err := b.Hold(regions...)
		if err != nil {
			return backends.Complete, err
		}
		defer release()
	}
	return b.copyFloor.CopyBatch(copies, stream)
}

// CopyBlocks is copyFloor's.
func (b *pauseFloor) CopyBlocks(blocks *backends.Blocks, stream backends.Stream) (backends.Progress, error) {
	if b.pauses.ever.Load() {
		regions := []backends.Region{blocks.To.Region, blocks.From.Region}
		for _, p := range blocks.Planes {
			regions = append(regions, p.Dst, p.Src)
		}
		release, err := b.Hold(regions...)
		if err != nil {
			return backends.Complete, err
		}
		defer release()
	}
	return b.copyFloor.CopyBlocks(blocks, stream)
}

// Convert is copyFloor's.
func (b *pauseFloor) Convert(dst, src backends.Strided, stream backends.Stream) error {
	if b.pauses.ever.Load() {
		release, err := b.Hold(dst.Region, src.Region)
		if err != nil {
			return err
		}
		defer release()
	}
	return b.copyFloor.Convert(dst, src, stream)
}

// Fill is copyFloor's.
func (b *pauseFloor) Fill(dst backends.Region, pattern []byte, count int, stream backends.Stream) error {
	if b.pauses.ever.Load() {
		release, err := b.Hold(dst)
		if err != nil {
			return err
		}
		defer release()
	}
	return b.copyFloor.Fill(dst, pattern, count, stream)
}
