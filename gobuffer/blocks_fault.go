package gobuffer

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// blockFault is the ticket of copies by indices that a device checks. The first wait for them that finds an index out
// of range returns that, as a device's error.
type blockFault struct {
	*order.Event
	looks []backends.BlockFailure
	name  func(*backends.BadIndex) error
	once  sync.Once

	problem error
	looked  atomic.Bool
	told    atomic.Bool
	thread  int         // that enqueued the copies
	on      *order.Work // all that their stream holds
}

// Before does nothing on the copies' own stream. A captured one could not wait for what is not in the graph.
func (f *blockFault) Before(w *order.Work) (bool, error) {
	//mutate:never a graph is to wait for copies by a device's indices that are not part of it
	if f.on.HoldsAll(w) && (order.Stays(w.Backend, w.Stream) || w.Captured()) {
		return true, nil
	}
	//mutate:replace another stream does not wait for copies by a device's indices
	//mutate:with f.Event.Before(w) => true, error(nil)
	return f.Event.Before(w)
}

func (f *blockFault) Wait() error {
	if err := f.Event.Wait(); err != nil {
		return err
	}
	return f.Found()
}

func (f *blockFault) Done() (bool, error) {
	done, err := f.Event.Done()
	if done && err == nil {
		err = f.Found()
	}
	return done && err == nil, err
}

// Found returns once what the device has found.
func (f *blockFault) Found() error {
	if err := f.look(); err != nil && !f.told.Swap(true) {
		return err
	}
	return nil
}

// Settled reports whether there is nothing to tell, as far as somebody has looked.
func (f *blockFault) Settled() bool { return f.told.Load() || f.looked.Load() && f.problem == nil }

// look asks the device once.
func (f *blockFault) look() error {
	f.once.Do(func() {
		for _, look := range f.looks {
			if bad := look(); bad != nil && f.problem == nil {
				f.problem = f.name(bad)
			}
		}
		f.looked.Store(true)
	})
	return f.problem
}

// mostBlockFaults is how many copies are kept that may tell their thread of an index.
const mostBlockFaults = 256

// blockFaults are those that nobody has looked at, perhaps, the oldest first.
type blockFaults struct {
	mutex sync.Mutex
	list  []*blockFault
}

// add keeps f for the calling thread's next sweep. It lets go of the oldest where there are too many, as of threads
// that have ended.
func (f *blockFaults) add(fault *blockFault) (err error) {
	fault.thread = unix.Gettid()
	fault.Retain()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.list = append(f.list, fault)
	if len(f.list) > mostBlockFaults {
		err = f.list[0].Release()
		f.list = slices.Delete(f.list, 0, 1)
	}
	return err
}

// sweep returns what is known of the calling thread's copies that are over. Other threads have their errors themselves.
// During a capture nothing is asked: that would end it.
func (f *blockFaults) sweep(captured func() bool) (err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.list) == 0 || captured() {
		return nil
	}
	thread := unix.Gettid()
	var busy order.Works // streams, which have not come to what is later in the list, either
	f.list = slices.DeleteFunc(f.list, func(each *blockFault) bool {
		if err != nil || busy.Cover(each.on) {
			return false
		}
		if !each.looked.Load() {
			if done, failed := each.Event.Done(); failed != nil || !done {
				busy = append(busy, each.on)
				return false // who waits for it is told
			}
		}
		//mutate:replace a thread is told of another thread's index
		//mutate:with each.thread != thread => thread == 0
		if each.look() != nil && each.thread != thread && !each.told.Load() {
			return false
		}
		//mutate:replace nobody is told of an index out of range if nobody has waited
		//mutate:with each.Found() => nil
		err = errors.Join(each.Found(), each.Release())
		return true
	})
	return err
}

// TellLater keeps indices out of range among the problems of err for their threads' next CopyBlocks, and returns the
// other problems. It is for who met them and can raise them to nobody, as when memory is released.
func (r *Runtime) TellLater(err error) error {
	if unusable := r.check(); unusable != nil {
		return errors.Join(err, unusable)
	}
	if err == nil {
		return nil
	}
	f := &r.blockFaults
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, each := range f.list {
		if each.looked.Load() && each.problem != nil && errors.Is(err, each.problem) {
			//mutate:remove an index out of range is lost with the memory whose release met it
			each.told.Store(false)
			err = without(err, each.problem)
		}
	}
	return err
}

// without is err without one of those that are joined in it.
func without(err, gone error) error {
	if err == gone {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var left []error
	for _, each := range joined.Unwrap() {
		left = append(left, without(each, gone))
	}
	return errors.Join(left...)
}
