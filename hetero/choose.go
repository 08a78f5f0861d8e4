package hetero

import (
	"cmp"
	"fmt"
	"slices"

	"hamr/backends"
)

// Policy says which of several devices is chosen.
type Policy uint8

// The policies. Where two devices are equal, keys decide as with RoundRobin.
const (
	// RoundRobin takes device number key modulo devices, as CMSSW does with the number of a stream
	// of events.
	RoundRobin Policy = iota
	// FreeMemory takes the device that has most free memory, with what hamr keeps there for reuse.
	FreeMemory
	// LeastPending takes the device with the fewest streams that are handed out, or that have work.
	LeastPending
)

var policyNames = [...]string{RoundRobin: "round_robin", FreeMemory: "free_memory", LeastPending: "least_pending"}

// String returns the policy's name in Python.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// ParsePolicy reads what String writes. The error is a *gobuffer.ArgumentError.
func ParsePolicy(name string) (Policy, error) {
	if i := slices.Index(policyNames[:], name); i >= 0 {
		return Policy(i), nil
	}
	return 0, valueError("policy", fmt.Sprintf("%q", name), fmt.Sprintf("one of %q", policyNames))
}

// ChooserOptions says what a Chooser chooses from, and how. The zero value is RoundRobin over each
// device that Accelerators returns, once where two runtimes show the same one.
type ChooserOptions struct {
	Policy   Policy
	Disabled bool     // nothing is chosen, nor is any runtime asked for its devices
	Among    []string // see Scheduler.Accelerators
}

// Chooser decides on which device a chain of modules runs: CMSSW's CUDADeviceChooser. It is safe for
// concurrent use.
type Chooser struct {
	scheduler *Scheduler
	policy    Policy
	caches    []*cache
}

// NewChooser finds the devices to choose from. That there are none is no error.
func (s *Scheduler) NewChooser(o ChooserOptions) (*Chooser, error) {
	if int(o.Policy) >= len(policyNames) {
		return nil, valueError("policy", o.Policy, fmt.Sprintf("one of %q", policyNames))
	}
	chooser := &Chooser{scheduler: s, policy: o.Policy}
	if o.Disabled {
		return chooser, nil
	}
	list, err := s.Accelerators(o.Among...)
	if err != nil {
		return nil, err
	}
	if len(o.Among) == 0 {
		list = s.Distinct(list)
	}
	for _, p := range list {
		c, err := s.cacheOf(p)
		if err != nil {
			return nil, err
		}
		chooser.caches = append(chooser.caches, c)
	}
	return chooser, nil
}

// Distinct returns the places without those whose device another runtime's before them shows, too.
func (s *Scheduler) Distinct(list []Place) (kept []Place) {
	for _, p := range list {
		seen := slices.ContainsFunc(kept, func(before Place) bool {
			if before.Backend == p.Backend {
				return false
			}
			device, found, err := s.Runtime().SameDevice(p.Backend, p.Device, before.Backend)
			return err == nil && found && device == before.Device
		})
		if !seen {
			kept = append(kept, p)
		}
	}
	return kept
}

// Places returns what there is to choose from.
func (c *Chooser) Places() (list []Place) {
	if c == nil {
		return nil
	}
	for _, each := range c.caches {
		list = append(list, each.place)
	}
	return list
}

// Choose returns a token with a stream of the chosen device or, without an error, nil where there is
// no device or the Chooser is disabled. key tells chains apart: the number of CMSSW's stream.
func (c *Chooser) Choose(key int) (*Token, error) {
	if c == nil {
		return nil, zeroError("chooser", "what NewChooser returns")
	}
	if len(c.caches) == 0 {
		return nil, nil
	}
	chosen, err := c.pick(key)
	if err != nil {
		return nil, err
	}
	l, err := chosen.newLine()
	if err != nil {
		return nil, err
	}
	t := &Token{line: l}
	t.usage.open()
	return t, nil
}

func (c *Chooser) pick(key int) (*cache, error) {
	count := len(c.caches)
	first := (key%count + count) % count
	if c.policy == RoundRobin || count == 1 {
		return c.caches[first], nil
	}
	best, bestLoad := c.caches[first], int64(0)
	for i := range count {
		each := c.caches[(first+i)%count]
		load, err := each.load(c.policy)
		if err != nil {
			return nil, fmt.Errorf("choosing a device: %s: %w", each.place, err)
		}
		if i == 0 || cmp.Less(load, bestLoad) {
			best, bestLoad = each, load
		}
	}
	return best, nil
}

// load is less for the better device.
func (c *cache) load(by Policy) (int64, error) {
	if by == FreeMemory {
		free, err := c.free()
		return -free, err
	}
	busy, err := c.busy()
	return int64(busy), err
}

// free is zero where the backend cannot tell.
func (c *cache) free() (bytes int64, err error) {
	if reporter, ok := backends.As[backends.MemoryReporter](c.backend); ok {
		if bytes, _, err = reporter.MemoryInfo(c.place.Device); err != nil {
			return 0, err
		}
	}
	if pooler, ok := backends.As[backends.Pooler](c.backend); ok {
		for _, pool := range pooler.Pools() {
			if pool.Device == c.place.Device {
				bytes += pool.Cached
			}
		}
	}
	return bytes, nil
}

// busy counts the streams that are handed out and, of those given back, the ones that have work. The
// former are not asked: somebody may be capturing them into a graph.
func (c *cache) busy() (count int, err error) {
	c.mutex.Lock()
	count, kept := len(c.out), c.idleStreams.count
	c.mutex.Unlock()
	for range kept {
		c.mutex.Lock()
		stream, some := c.idleStreams.pop()
		c.mutex.Unlock()
		if !some {
			break
		}
		idle, err := c.settled(stream)
		if err != nil {
			return 0, err
		}
		if !idle {
			count++
		}
		c.mutex.Lock()
		c.idleStreams.push(stream)
		c.mutex.Unlock()
	}
	return count, nil
}

// DeviceFilter reports whether a Chooser has chosen a device: CMSSW's CUDADeviceFilter, whose negation
// selects the CPU's path.
func DeviceFilter(t *Token) bool { return t != nil }
