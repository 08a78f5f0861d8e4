package order

import (
	"errors"
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// Stays reports whether a stream may be asked about at any time: it never ends, or hamr is told before. Any
// other one may have ended since the call that named it, and a driver must not be given its handle then.
func Stays(b backends.Backend, s backends.Stream) bool {
	if s == 0 {
		return true
	}
	keeper, ok := backends.As[backends.StreamKeeper](b)
	return !ok || keeper.Kept(s)
}

// MayHaveEnded reports whether w stands for what a stream holds that may have ended.
func (w *Work) MayHaveEnded() bool {
	return w.Ticket == nil && w.Streams != nil && !Stays(w.Backend, w.Stream)
}

// waitOrRest is Wait that asks for nothing of a stream that may have ended: the device is waited for.
func (w *Work) waitOrRest() error {
	if !w.MayHaveEnded() {
		return w.Wait()
	}
	return Rest(w.Backend, w.Device)
}

// Rest waits for all work on a device. The error says why it may not be over.
func Rest(b backends.Backend, device int) error {
	over, late := SettleDevice(b, device)
	if over {
		return nil
	}
	return late
}

// SettleDevice waits for all work on a device, or on all for backends.HostDevice. As a wait
// reports what went wrong before it, too, only a second one says whether the work is over.
func SettleDevice(b backends.Backend, device int) (over bool, late error) {
	s, ok := backends.As[backends.DeviceSynchronizer](b)
	if !ok {
		return true, nil
	}
	if device == backends.HostDevice {
		count, err := b.DeviceCount()
		if err != nil {
			return false, err
		}
		over = true
		for each := range count {
			done, err := SettleDevice(b, each)
			over, late = over && done, errors.Join(late, err)
		}
		return over, late
	}
	//mutate:skip memory that others used on any stream is released without waiting for the device
	if late = s.SynchronizeDevice(device); late == nil {
		return true, nil
	}
	//mutate:replace memory is released although its device could not be waited for
	//mutate:with s.SynchronizeDevice(device) == nil => s != nil
	return s.SynchronizeDevice(device) == nil, late
}

// Captured reports whether w's stream is, or may be, captured into a graph.
func (w *Work) Captured() bool {
	l, ok := backends.As[backends.Launcher](w.Backend)
	if !ok {
		return false
	}
	captured, err := l.Capturing(w.Device, w.Stream)
	return captured || err != nil
}

// ByEvent is w, or an event of what its stream holds now if that may end before somebody waits.
func (w *Work) ByEvent() *Work {
	if !w.MayHaveEnded() || w.Captured() {
		return w
	}
	e, err := w.Record()
	if err != nil {
		return w
	}
	return w.With(e)
}

// UntilRest is w, over when the device has done all its work.
func (w *Work) UntilRest() *Work {
	return w.With(&atRest{backend: w.Backend, device: w.Device})
}

// atRest is the ticket of what a stream held that may have ended: it is over when the device has done all its
// work. Only a wait says so: whoever asks has a goroutine wait, and is told when that has come to its end.
type atRest struct {
	backend backends.Backend
	device  int
	over    atomic.Bool
	asked   atomic.Bool           // a goroutine waits
	failed  atomic.Pointer[error] // what the goroutine's wait met, for who asks next
}

func (a *atRest) Wait() error {
	if a.over.Load() {
		return nil
	}
	late := Rest(a.backend, a.device)
	if late == nil {
		a.over.Store(true)
	}
	return late
}

func (a *atRest) Done() (bool, error) {
	if a.over.Load() {
		return true, nil
	}
	if failed := a.failed.Swap(nil); failed != nil {
		return false, *failed
	}
	if a.asked.CompareAndSwap(false, true) {
		go func() {
			if err := a.Wait(); err != nil {
				a.failed.Store(&err)
			}
			a.asked.Store(false)
		}()
	}
	return false, nil
}

func (a *atRest) Before(*Work) (bool, error) { return false, nil }
func (a *atRest) Retain()                    {}
func (a *atRest) Release() error             { return nil }

// Unasked are the streams that Unasked has named, by how many calls name them now.
type Unasked struct {
	mutex sync.Mutex
	calls map[backends.Stream]int
}

func (u *Unasked) Add(s backends.Stream, count int) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.calls == nil {
		u.calls = map[backends.Stream]int{}
	}
	//mutate:replace the first of two calls asks a stream that the second has named
	//mutate:with u.calls[s] == 0 => count < 0
	if u.calls[s] += count; u.calls[s] == 0 {
		delete(u.calls, s)
	}
}

func (u *Unasked) Has(s backends.Stream) bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.calls[s] > 0
}
