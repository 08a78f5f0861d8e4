package hetero

import (
	"errors"
	"slices"

	"hamr/backends"
)

// hoard is what keeps memory for reuse: a CachingAllocator.
type hoard interface {
	Trim() error
	blocks() int
	forget(stream backends.Stream) error
}

func (s *Scheduler) add(h hoard) {
	s.mutex.Lock()
	s.allocators = append(slices.Clone(s.allocators), h)
	s.mutex.Unlock()
	s.relief.Do(func() { s.runtime.OnOutOfMemory(s.makeRoom) })
}

func (s *Scheduler) remove(h hoard) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.allocators = slices.DeleteFunc(slices.Clone(s.allocators), func(other hoard) bool { return other == h })
}

func (s *Scheduler) hoards() []hoard {
	if s == nil {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.allocators
}

// TrimAllocators is Trim of all CachingAllocators that were made here.
func (s *Scheduler) TrimAllocators() (failed error) {
	for _, a := range s.hoards() {
		failed = errors.Join(failed, a.Trim())
	}
	return failed
}

// makeRoom is for memory of anybody's that has run out, and reports whether any was given back.
func (s *Scheduler) makeRoom(int, int) (some bool) {
	for _, a := range s.hoards() {
		before := a.blocks()
		_ = a.Trim() // what went wrong on a device is no reason to say that there is no room
		some = some || a.blocks() < before
	}
	return some
}

// ForgetStream has CachingAllocators do without a stream that is not of the Scheduler's and is about to
// end: for who gives their memory out on such streams, see CachingAllocator.AllocateOn.
func (s *Scheduler) ForgetStream(stream backends.Stream) (failed error) {
	for _, a := range s.hoards() {
		failed = errors.Join(failed, a.forget(stream))
	}
	return failed
}

// leave makes memory do without a stream that is about to end.
func (s *Scheduler) leave(stream backends.Stream) (over bool, err error) {
	if err := errors.Join(s.runtime.LeaveKept(stream), s.ForgetStream(stream)); err != nil {
		return false, err
	}
	if f := s.retire.Load(); f != nil && *f != nil {
		//mutate:replace memory is not told that a stream ends
		//mutate:with (*f)(stream) => f != nil, nil
		return (*f)(stream)
	}
	return true, nil
}
