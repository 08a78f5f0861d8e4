package backendtest

import (
	"bytes"
	"slices"

	"hamr/backends"
)

// Copy queues a copy. The source is read when the copy runs, save for what
// FakeOptions.Strict says of pageable memory.
func (f *fakeMemory) Copy(dst, src backends.Region, size int, s backends.Stream) (left backends.Progress, err error) {
	f.onThread(func() { left, err = f.copy(dst, src, size, s) })
	return left, err
}

func (f *fakeMemory) copy(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	if err := f.enter("Copy", "%s from %s, %d bytes, stream %#x", describe(dst), describe(src), size, s); err != nil {
		return backends.Complete, err
	}
	to, err := f.view("Copy", dst, size)
	if err != nil {
		return backends.Complete, err
	}
	from, err := f.view("Copy", src, size)
	if err != nil {
		return backends.Complete, err
	}
	if to.block == nil && from.block == nil {
		return backends.Complete, f.violate("Copy", "neither %s nor %s is memory of %s", describe(dst),
			describe(src), f.Name())
	}
	if distance := int(dst.Address) - int(src.Address); to.block != nil && to.block == from.block &&
		max(distance, -distance) < size {
		return backends.Complete, f.violate("Copy", "%s and %s overlap", describe(dst), describe(src))
	}
	if err := f.checkWritable("Copy", to); err != nil {
		return backends.Complete, err
	}
	stream, err := f.streamFor("Copy", s, to, from)
	if err != nil {
		return backends.Complete, err
	}
	if f.apart(to.block, from.block) {
		return backends.Complete, f.copyThroughHost(to, from, stream)
	}
	left := backends.Reading | backends.Writing
	if from.pageable && !f.options.Strict {
		from = memory{host: bytes.Clone(from.host)}
		left = backends.Writing
	}
	done := &point{stream: stream}
	f.enqueue(stream, task{point: done, run: func() {
		f.onBlock(to.block, "copy", func() {
			f.onBlock(from.block, "copy", func() { copy(to.bytes(), from.bytes()) })
		})
	}})
	if to.pageable && !f.options.Strict {
		f.reach(done)
		return backends.Complete, stream.takeError()
	}
	if f.options.Synchronous {
		left = backends.Complete
	}
	return left, nil
}

// Fill queues a fill.
func (f *fakeMemory) Fill(dst backends.Region, pattern []byte, count int, s backends.Stream) (err error) {
	f.onThread(func() { err = f.fill(dst, pattern, count, s) })
	return err
}

func (f *fakeMemory) fill(dst backends.Region, pattern []byte, count int, s backends.Stream) error {
	if err := f.enter("Fill", "%s, %d times %x, stream %#x", describe(dst), count, pattern, s); err != nil {
		return err
	}
	if len(pattern) < 1 || len(pattern) > 16 {
		return f.violate("Fill", "a pattern of %d bytes", len(pattern))
	}
	to, err := f.view("Fill", dst, len(pattern)*count)
	if err != nil {
		return err
	}
	if to.block == nil {
		return f.violate("Fill", "%s is not memory of %s", describe(dst), f.Name())
	}
	if err := f.checkWritable("Fill", to); err != nil {
		return err
	}
	stream, err := f.streamFor("Fill", s, to)
	if err != nil {
		return err
	}
	pattern = slices.Clone(pattern)
	f.enqueue(stream, task{run: func() {
		f.onBlock(to.block, "fill", func() { copy(to.bytes(), bytes.Repeat(pattern, count)) })
	}})
	return nil
}

// Launch queues a kernel: a function that gets at device memory through its
// argument, as a foreign library's work on the same stream would. It must not
// call the Fake.
func (f *fakeMemory) Launch(device int, s backends.Stream,
	kernel func(memory func(at backends.Address, size int) []byte)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Launch", "device %d, stream %#x", device, s); err != nil {
		return err
	}
	stream, err := f.stream("Launch", device, s)
	if err != nil {
		return err
	}
	f.enqueue(stream, task{run: func() {
		f.executing = true
		defer func() { f.executing = false }()
		f.runKernel(kernel)
	}})
	return nil
}
