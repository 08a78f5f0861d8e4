package gobuffer

import (
	"errors"
	"slices"
	"sync"

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
}

func (f *blockFault) Wait() error {
	if err := f.Event.Wait(); err != nil {
		return err
	}
	return f.found()
}

func (f *blockFault) Done() (bool, error) {
	done, err := f.Event.Done()
	if done && err == nil {
		err = f.found()
	}
	return done && err == nil, err
}

// found returns once what the device has found.
func (f *blockFault) found() (err error) {
	f.once.Do(func() {
		for _, look := range f.looks {
			if bad := look(); bad != nil && err == nil {
				err = f.name(bad)
			}
		}
	})
	return err
}

// blockFaults are those that nobody has looked at, perhaps, the oldest first.
type blockFaults struct {
	mutex sync.Mutex
	list  []*blockFault
}

// sweep returns what is known of copies that are over.
func (f *blockFaults) sweep() (err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for len(f.list) > 0 && err == nil {
		first := f.list[0]
		done, failed := first.Event.Done()
		if failed != nil || !done {
			return nil // who waits for it is told
		}
		f.list = slices.Delete(f.list, 0, 1)
		//mutate:replace nobody is told of an index out of range if nobody has waited
		//mutate:with first.found() => nil
		err = errors.Join(first.found(), first.Release())
	}
	return err
}
