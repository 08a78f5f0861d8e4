package pyhamr

import (
	"errors"
	"runtime"
	"time"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/pyhamr/internal/bridge"
)

// ResolveStream returns a stream that means the same from every thread.
func ResolveStream(backend string, device int, stream uint64) (uint64, error) {
	return with(backend, device, func(s backends.Streams, device int) (uint64, error) {
		resolved, err := s.Resolve(device, backends.Stream(stream))
		return uint64(resolved), err
	})
}

// NewStream makes a stream, which the caller destroys.
func NewStream(backend string, device int) (uint64, error) {
	return with(backend, device, func(s backends.Streams, device int) (uint64, error) {
		made, err := s.NewStream(device)
		return uint64(made), err
	})
}

// RetireStream makes all memory do without a stream, and reports whether it may end
// then: not while another thread's call is using it.
//
//hamr:blocking
func RetireStream(stream uint64) (bool, error) {
	over := false
	_, err := run(func() (err error) {
		over, err = bridge.Retire(backends.Stream(stream))
		return err
	})
	return over, err
}

// DestroyStream ends a stream; its work still runs.
func DestroyStream(backend string, device int, stream uint64) (int, error) {
	return with(backend, device, func(s backends.Streams, device int) (int, error) {
		return 0, s.DestroyStream(device, backends.Stream(stream))
	})
}

// What StreamDevice returns in place of a device.
const (
	unknownDevice = -1
	noStream      = -2
)

// StreamDevice returns the device of a stream that somebody else made, -2 if the
// backend knows of no such stream, and -1 if that cannot be told: there is no runtime
// here that has streams, or it is in trouble.
//
//hamr:blocking
func StreamDevice(backend string, stream uint64) (int, error) {
	found := unknownDevice
	_, err := run(func() error {
		b, err := bridge.Runtime.Named(backend)
		locator, ok := backends.As[backends.Streams](b)
		if err != nil || !ok {
			return nil
		}
		device, err := locator.StreamDevice(backends.Stream(stream))
		switch {
		case err == nil:
			found = device
		case errors.Is(err, backends.ErrNoStream):
			found = noStream
		}
		return nil
	})
	return found, err
}

// StreamIdle reports whether all work on a stream is over.
func StreamIdle(backend string, device int, stream uint64) (bool, error) {
	return with(backend, device, func(s backends.Streams, device int) (bool, error) {
		return s.Idle(device, backends.Stream(stream))
	})
}

// WaitStream waits until all work on a stream is over, but at most for some
// milliseconds, and reports whether it is.
//
//hamr:blocking
func WaitStream(backend string, device int, stream uint64, milliseconds int) (bool, error) {
	return with(backend, device, func(s backends.Streams, device int) (bool, error) {
		return poll(milliseconds, func() (bool, error) { return s.Idle(device, backends.Stream(stream)) })
	})
}

// RecordEvent makes an event that stands for the work on a stream so far.
func RecordEvent(backend string, device int, stream uint64) (uint64, error) {
	return with(backend, device, func(s backends.Streams, device int) (uint64, error) {
		e, err := s.NewEvent(device)
		if err != nil {
			return 0, err
		}
		if err := s.Record(device, e, backends.Stream(stream)); err != nil {
			_ = s.DestroyEvent(device, e)
			return 0, err
		}
		return uint64(e), nil
	})
}

// DestroyEvent ends an event.
func DestroyEvent(backend string, device int, event uint64) (int, error) {
	return with(backend, device, func(s backends.Streams, device int) (int, error) {
		return 0, s.DestroyEvent(device, backends.Event(event))
	})
}

// EventDone reports whether the work that an event stands for is over.
func EventDone(backend string, device int, event uint64) (bool, error) {
	return with(backend, device, func(s backends.Streams, device int) (bool, error) {
		return s.Done(device, backends.Event(event))
	})
}

// WaitEvent is WaitStream for an event.
//
//hamr:blocking
func WaitEvent(backend string, device int, event uint64, milliseconds int) (bool, error) {
	return with(backend, device, func(s backends.Streams, device int) (bool, error) {
		return poll(milliseconds, func() (bool, error) { return s.Done(device, backends.Event(event)) })
	})
}

// StreamWaitEvent makes later work on a stream of a device wait for an event.
func StreamWaitEvent(backend string, device int, stream, event uint64) (int, error) {
	return with(backend, device, func(s backends.Streams, device int) (int, error) {
		return 0, s.Wait(device, backends.Stream(stream), backends.Event(event))
	})
}

// ArrayIdle reports whether nothing of hamr's, nor anything on the array's stream,
// is pending on the elements.
func ArrayIdle(source uint64) (bool, error) {
	idle := false
	_, err := run(func() error {
		s, err := bridge.Covering(bridge.At(source))
		idle = s == 0
		return err
	})
	return idle, err
}

// WaitArray waits until ArrayIdle, but at most for some milliseconds, and reports
// whether it is.
//
//hamr:blocking
func WaitArray(source uint64, milliseconds int) (bool, error) {
	idle := false
	_, err := run(func() error {
		a, err := bridge.At(source).Array()
		if err != nil {
			return err
		}
		defer a.Close()
		idle, err = waitFor(a, milliseconds)
		return err
	})
	return idle, err
}

func waitFor(a *gobuffer.Array, milliseconds int) (bool, error) {
	return poll(milliseconds, func() (bool, error) {
		defer bridge.Calls.Leave(bridge.Calls.Enter())
		_, busy, err := a.Covering()
		return !busy, err
	})
}

// poll asks again and again, at first without a pause, then with ever longer
// ones: most waits are short.
func poll(milliseconds int, done func() (bool, error)) (bool, error) {
	const eager = 100 * time.Microsecond
	start, pause := time.Now(), 10*time.Microsecond
	for {
		if ok, err := done(); ok || err != nil {
			return ok, err
		}
		waited := time.Since(start)
		if waited >= time.Duration(milliseconds)*time.Millisecond {
			return false, nil
		}
		if waited < eager {
			runtime.Gosched()
			continue
		}
		time.Sleep(pause)
		pause = min(2*pause, time.Millisecond)
	}
}
