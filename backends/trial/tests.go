//go:build trial

package trial

import (
	"bytes"
	"fmt"
	"slices"

	"hamr/backends"
)

// Methods by which tests look into the device: see backendtest.Device.

// fault is an error that waits for its call.
type fault struct {
	call string
	left int
	err  error
}

// FailAt makes a call fail.
func (b *Backend) FailAt(call string, nth int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.injected = append(b.injected, &fault{call, nth, err})
}

// StopFailing forgets what has not failed.
func (b *Backend) StopFailing() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.injected = nil
}

// CallCount counts calls of a method.
func (b *Backend) CallCount(call string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[call]
}

// enter counts a call, and returns the error that it is to fail with.
func (b *Backend) enter(call string) error {
	b.counts[call]++
	if !b.probed {
		return b.violate(call, "called before Probe")
	}
	for i, f := range b.injected {
		if f.call != call {
			continue
		}
		switch f.left--; f.left {
		case 0:
			b.injected = slices.Delete(b.injected, i, i+1)
			return f.err
		case -1:
			f.left = 0
			return f.err
		}
	}
	return nil
}

// violate notes a misuse, and returns the error that tells of it.
func (b *Backend) violate(call, format string, arguments ...any) error {
	message := fmt.Sprintf(format, arguments...)
	b.violations = append(b.violations, call+": "+message)
	return &backends.DeviceError{API: name, Call: call, Name: "TRIAL_ERROR_INVALID_VALUE", Code: 1, Message: message}
}

// Violations lists every misuse.
func (b *Backend) Violations() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.violations)
}

// Launch enqueues a kernel of another library's, which waits for that library's own ones and
// relies on barriers for all else.
func (b *Backend) Launch(device int, s backends.Stream,
	kernel func(memory func(at backends.Address, size int) []byte)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Launch"); err != nil {
		return err
	}
	q, err := b.queueFor("Launch", s, device)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(q.everything(), func(i *item) bool { return i.what != "kernel" })
	b.enqueue(q, &item{what: "kernel", run: func() { kernel(b.bytesForKernel) }}, own...)
	return nil
}

func (b *Backend) bytesForKernel(at backends.Address, size int) []byte {
	k := b.find(at)
	if k == nil || k.freed || int(at-k.base)+size > k.size {
		_ = b.violate("Execute", "a kernel uses %d bytes at %#x, which are not there", size, at)
		return make([]byte, size)
	}
	p := part{block: k, from: int(at - k.base), size: size}
	if k.window(p) != nil {
		_ = b.violate("Execute", "a kernel uses %d bytes at %#x, which are mapped", size, at)
	}
	return p.bytes()
}

// truth is the bytes for who may use them now.
func (b *Backend) truth(at backends.Address, size int) []byte {
	if k := b.find(at); k != nil && !k.freed {
		p := part{block: k, from: int(at - k.base), size: size}
		if w := k.window(p); w != nil && w.write && w.from <= p.from && p.from+size <= w.from+w.size {
			return w.host[p.from-w.from:][:size]
		}
		return p.bytes()
	}
	_ = b.violate("Peek", "%d bytes at %#x are not there", size, at)
	return make([]byte, size)
}

// Peek returns a copy of memory.
func (b *Backend) Peek(at backends.Address, size int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.truth(at, size))
}

// Poke writes memory.
func (b *Backend) Poke(at backends.Address, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	copy(b.truth(at, len(data)), data)
}

// Finish does all pending work.
func (b *Backend) Finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finish(slices.Clone(b.undone)...)
}

// Live counts what was allocated and not freed.
func (b *Backend) Live() (allocations, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.blocks {
		if !k.freed {
			allocations++
			size += k.size
		}
	}
	return allocations, size
}

// LiveHandles counts streams that somebody made, and events.
func (b *Backend) LiveHandles() (streams, events int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queues) - len(b.devices), len(b.events)
}
