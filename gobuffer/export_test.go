package gobuffer

import (
	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/gobuffer/internal/shares"
)

// AdoptMapping is memory that is mapped for as long as it is used.
func AdoptMapping(r *Runtime, at backends.Region, size int, unmap func() error) (*Memory, error) {
	return r.attach(&shares.Attachment{Region: at, Size: size, End: unmap})
}

// Known is how many memories' uses are looked at.
func Known(c *Checker) int {
	c.witness.mutex.Lock()
	defer c.witness.mutex.Unlock()
	return len(c.witness.owned) + len(c.witness.foreign)
}

// HoldLooking has nobody look at what is kept, until the result is called.
func HoldLooking(c *Checker) func() {
	c.ending.Lock()
	return c.ending.Unlock
}

// KeptBytes is how much is kept.
func KeptBytes(c *Checker) int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.bytes
}

// WaitAtReleases makes each release wait for the devices that it would leave to somebody else.
func WaitAtReleases(r *Runtime) { r.postponed.Never = true }

// SweepBlocks forgets copies of blocks whose indices nobody has looked at, which are over.
func SweepBlocks(r *Runtime) {
	for _, f := range r.blockFaults.list {
		f.thread = unix.Gettid() // goroutines change threads
	}
	for r.blockFaults.sweep(func() bool { return false }) != nil {
		continue
	}
}

// BlockFaults is how many copies of blocks are kept that may tell of an index.
func BlockFaults(r *Runtime) int { return len(r.blockFaults.list) }
