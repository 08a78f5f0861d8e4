package gobuffer

import (
	"errors"
	"hamr/backends"
	"hamr/gobuffer/internal/order"
	"sync"
	"sync/atomic"
)

// loadedModule is a module on one device, with what has been launched there.
type loadedModule struct {
	launcher backends.Launcher
	device   int
	handle   backends.Module
	uses     order.Uses
	mutex    sync.RWMutex // of what follows, and held for reading by who launches
	ended    bool
	captured atomic.Bool // a launch went into a graph, which may run at any time
}

// loadedModules are all modules of a Runtime's that are loaded, and those that nobody uses any more.
type loadedModules struct {
	mutex   sync.Mutex
	open    []*loadedModule
	leaving []*loadedModule
}

func (l *loadedModules) add(m *loadedModule) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.open = append(l.open, m)
}

func without(list []*loadedModule, m *loadedModule) (rest []*loadedModule) {
	for _, each := range list {
		if each != m {
			rest = append(rest, each)
		}
	}
	return rest
}

// leave has a module unloaded when its launches are over. Their streams may end before that.
func (l *loadedModules) leave(m *loadedModule) {
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
	l.open = without(l.open, m)
	if !m.captured.Load() {
		l.leaving = append(l.leaving, m)
	}
}

// collect unloads those of the modules that nobody uses whose launches are over.
func (l *loadedModules) collect() (failed error) {
	l.mutex.Lock()
	leaving := l.leaving
	l.leaving = nil
	l.mutex.Unlock()
	var busy []*loadedModule
	for _, m := range leaving {
		//mutate:always a module is unloaded while its kernels run
		if m.idle() {
			failed = errors.Join(failed, m.launcher.UnloadModule(m.device, m.handle))
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

// settle waits for the launches of the modules that nobody uses, and unloads them.
func (l *loadedModules) settle() error {
	l.mutex.Lock()
	leaving := append([]*loadedModule(nil), l.leaving...)
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
	return errors.Join(failed, l.collect())
}

// pending is what was launched and not seen to be over. It is valid as long as nobody forgets it.
func (m *loadedModule) pending() order.Works {
	list := m.uses.Recorded()
	_ = list.LetGo() // the record keeps the tickets
	return list
}

// launched records a launch on w's stream.
func (m *loadedModule) launched(w *order.Work) {
	if recorded := m.pending(); !recorded.Cover(w) {
		//mutate:remove a module does not know of its kernels
		_ = m.uses.Replace(nil, w) // drops no ticket
	}
}

// launchedByEvent records a launch on a stream that may end at any time.
func (m *loadedModule) launchedByEvent(w *order.Work) error {
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

// forget has an event stand for what w's stream holds now.
func (m *loadedModule) forget(w *order.Work) error {
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
func (m *loadedModule) idle() bool {
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
