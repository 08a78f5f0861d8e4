package gobuffer

import "hamr/backends"

// FillSlots has a Runtime's next shares lie in no lane, until one that has a slot ends.
func FillSlots(r *Runtime) {
	r.leases.mu.Lock()
	defer r.leases.mu.Unlock()
	r.leases.slots.used, r.leases.slots.free = laneWords-1, nil
}

// Noted is how many shares this process's lanes say to be open.
func Noted() (count int) {
	ownLanes.mu.Lock()
	defer ownLanes.mu.Unlock()
	for _, each := range ownLanes.to {
		count += len(each.open)
	}
	return count
}

// LanesMade is how many lanes this process has.
func LanesMade() int {
	ownLanes.mu.Lock()
	defer ownLanes.mu.Unlock()
	return len(ownLanes.to)
}

const MostMakers = mostMakers

// DropLanes gives up the lanes that say nothing.
func DropLanes() {
	ownLanes.mu.Lock()
	defer ownLanes.mu.Unlock()
	for ownLanes.dropOldest() {
	}
}

// AdoptMapping is memory that is mapped for as long as it is used.
func AdoptMapping(r *Runtime, at backends.Region, size int, unmap func() error) (*Memory, error) {
	return r.adoptMapping(at, size, unmap)
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
func WaitAtReleases(r *Runtime) { r.postponed.never = true }
