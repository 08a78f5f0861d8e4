// Package modules knows the modules of kernels that are loaded into devices, and unloads each once nobody uses it
// and all its launches are over.
package modules

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Loaded is a module on one device, with what has been launched there.
type Loaded struct {
	Launcher backends.Launcher
	Device   int
	Handle   backends.Module
	uses     order.Uses
	mutex    sync.RWMutex // of what follows, and held for reading by who launches
	ended    bool
	captured atomic.Bool // a launch went into a graph, which may run at any time
}

// Set are all modules of a Runtime's that are loaded, and those that nobody uses any more.
type Set struct {
	mutex   sync.Mutex
	open    []*Loaded
	leaving []*Loaded
}

// Add has a module forget streams that end, until Leave.
func (l *Set) Add(m *Loaded) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.open = append(l.open, m)
}

// Leave has a module unloaded when its launches are over. Their streams may end before that.
func (l *Set) Leave(m *Loaded) {
	m.mutex.Lock()
	m.ended = true
	m.mutex.Unlock()
	for _, w := range m.pending() {
		if w.Ticket == nil {
			_ = m.forget(w)
		}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.open = slices.DeleteFunc(l.open, func(each *Loaded) bool { return each == m })
	if !m.captured.Load() {
		l.leaving = append(l.leaving, m)
	}
}

// Collect unloads those of the modules that nobody uses whose launches are over.
func (l *Set) Collect() (failed error) {
	l.mutex.Lock()
	leaving := l.leaving
	l.leaving = nil
	l.mutex.Unlock()
	var busy []*Loaded
	for _, m := range leaving {
		//mutate:always a module is unloaded while its kernels run
		if m.idle() {
			failed = errors.Join(failed, m.Launcher.UnloadModule(m.Device, m.Handle))
		} else {
			busy = append(busy, m)
		}
	}
	if len(busy) > 0 {
		l.mutex.Lock()
		l.leaving = append(l.leaving, busy...)
		l.mutex.Unlock()
	}
	return failed
}

// Settle waits for the launches of the modules that nobody uses, and unloads them.
func (l *Set) Settle() error {
	l.mutex.Lock()
	leaving := append([]*Loaded(nil), l.leaving...)
	l.mutex.Unlock()
	var failed error
	for _, m := range leaving {
		pending := m.uses.Recorded()
		for _, w := range pending {
			//mutate:remove a module's kernels are not waited for when it is to go
			failed = errors.Join(failed, w.Wait())
		}
		failed = errors.Join(failed, pending.LetGo())
	}
	return errors.Join(failed, l.Collect())
}

// pending is what was launched and not seen to be over. It is valid as long as nobody forgets it.
func (m *Loaded) pending() order.Works {
	list := m.uses.Recorded()
	_ = list.LetGo() // the record keeps the tickets
	return list
}

// Begin has the module stay loaded until End, unless nobody uses it any more: then it returns false.
func (m *Loaded) Begin() bool {
	m.mutex.RLock()
	if m.ended {
		m.mutex.RUnlock()
		return false
	}
	return true
}

// End ends what Begin has begun.
func (m *Loaded) End() { m.mutex.RUnlock() }

// Captured has the module stay loaded for good: a launch becomes part of a graph, which may run at any time.
func (m *Loaded) Captured() { m.captured.Store(true) }

// Launched records a launch on w's stream.
func (m *Loaded) Launched(w *order.Work) {
	if recorded := m.pending(); !recorded.Cover(w) {
		//mutate:remove a module does not know of its kernels
		_ = m.uses.Replace(nil, w) // drops no ticket
	}
}

// LaunchedByEvent records a launch on a stream that may end at any time.
func (m *Loaded) LaunchedByEvent(w *order.Work) error {
	e, err := w.Record()
	if err != nil {
		return errors.Join(err, w.Wait())
	}
	var before order.Works
	for _, each := range m.pending() {
		if each.Stream == w.Stream && each.Device == w.Device && each.Ticket != nil {
			before = append(before, each)
		}
	}
	return m.uses.Replace(before, w.With(e))
}

// Forget makes all modules independent of a stream that is about to end: an event stands for what was launched there.
// If the stream may have ended already, it is not used, and the device stands for it.
func (l *Set) Forget(s backends.Stream, mayHaveEnded bool) (failed error) {
	l.mutex.Lock()
	all := slices.Concat(l.open, l.leaving)
	l.mutex.Unlock()
	for _, m := range all {
		for _, w := range m.pending() {
			if w.Ticket != nil || w.Stream != s {
				continue
			}
			if mayHaveEnded {
				failed = errors.Join(failed, m.uses.Replace(order.Works{w}, w.UntilRest()))
				continue
			}
			//mutate:remove a module names a stream that has ended
			failed = errors.Join(failed, m.forget(w))
		}
	}
	return failed
}

// forget has an event stand for what w's stream holds now.
func (m *Loaded) forget(w *order.Work) error {
	if idle, err := w.Idle(); err == nil && idle {
		return m.uses.Replace(order.Works{w}, nil)
	}
	e, err := w.Record()
	if err != nil {
		return err
	}
	return m.uses.Replace(order.Works{w}, w.With(e))
}

// idle reports whether all launches are over. What cannot be asked is not.
func (m *Loaded) idle() bool {
	pending := m.uses.Recorded()
	var over order.Works
	for _, w := range pending {
		if idle, err := w.Idle(); err == nil && idle {
			over = append(over, w)
		}
	}
	all := len(over) == len(pending)
	_ = m.uses.Replace(over, nil)
	_ = pending.LetGo()
	return all
}
