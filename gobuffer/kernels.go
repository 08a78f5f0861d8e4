package gobuffer

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Module is code with kernels, which is loaded into each device that one is used on, at its first use
// there. It is safe for concurrent use.
type Module struct {
	runtime  *Runtime
	backend  backends.Backend
	launcher backends.Launcher
	streams  backends.Streams // nil if the backend has none
	image    []byte

	mutex  sync.Mutex // of what follows, and held while code is loaded
	closed bool
	loaded map[int]*loadedModule
}

// loadedModule is a module on one device, with what has been launched there.
type loadedModule struct {
	launcher backends.Launcher
	device   int
	handle   backends.Module
	uses     order.Uses
	kernels  map[string]*Kernel // with the Module's mutex
	mutex    sync.RWMutex       // of what follows, and held for reading by who launches
	ended    bool
	captured atomic.Bool // a launch went into a graph, which may run at any time
}

// NewModule returns a module of a backend's: text or a binary, as the vendor's compilers make it. It is not
// looked at before a kernel of it is asked for. The error is errors.ErrUnsupported, where the backend runs
// no kernels.
func (r *Runtime) NewModule(backend string, image []byte) (*Module, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	b, err := r.Named(backend)
	if err != nil {
		return nil, err
	}
	launcher, ok := backends.As[backends.Launcher](b)
	if !ok {
		return nil, fmt.Errorf("%w: the %s backend runs no kernels that are brought as code", errors.ErrUnsupported, backend)
	}
	if len(image) == 0 {
		return nil, valueError("module", "empty", "text or a binary of kernels")
	}
	streams, _ := backends.As[backends.Streams](b)
	return &Module{runtime: r, backend: b, launcher: launcher, streams: streams, image: append([]byte(nil), image...), loaded: map[int]*loadedModule{}}, nil
}

// Kernel returns a kernel on a device, whose memory of it lasts as long as the module is open.
func (m *Module) Kernel(device int, name string) (*Kernel, error) {
	if m == nil || m.runtime == nil {
		return nil, errNoModule
	}
	count, err := m.backend.DeviceCount()
	if err != nil {
		return nil, err
	}
	if device < 0 || device >= count {
		return nil, valueError("device", device, deviceNumbers(count, m.backend.Name()))
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.closed {
		return nil, errModuleClosed
	}
	on, err := m.load(device)
	if err != nil {
		return nil, err
	}
	if k := on.kernels[name]; k != nil {
		return k, nil
	}
	handle, err := m.launcher.Function(device, on.handle, name)
	if errors.Is(err, backends.ErrNoFunction) {
		return nil, valueError("name", fmt.Sprintf("%q", name), "a kernel of the module's: C++ gives others than extern \"C\" longer names")
	}
	if err != nil {
		return nil, err
	}
	facts, err := m.launcher.FunctionFacts(device, handle)
	if err != nil {
		return nil, err
	}
	k := &Kernel{module: m, on: on, handle: handle, name: name, facts: facts}
	k.shared.Store(int64(facts.Shared))
	on.kernels[name] = k
	return k, nil
}

// load is called with the mutex held.
func (m *Module) load(device int) (*loadedModule, error) {
	if on := m.loaded[device]; on != nil {
		return on, nil
	}
	_ = m.runtime.modules.collect()
	handle, err := m.launcher.LoadModule(device, m.image)
	if err != nil {
		return nil, err
	}
	on := &loadedModule{launcher: m.launcher, device: device, handle: handle, kernels: map[string]*Kernel{}}
	m.loaded[device] = on
	m.runtime.modules.add(on)
	if m.runtime.tracing() {
		m.runtime.tracef("load a module of %d bytes into %s device %d", len(m.image), m.backend.Name(), device)
	}
	return on, nil
}

// Close ends the module, and unloads it where its kernels are done. Where some have yet to run it is
// unloaded later: when another module is loaded or closed, or by ReleasePostponed. What went into a graph
// stays loaded. Closing twice is harmless.
func (m *Module) Close() error {
	if m == nil || m.runtime == nil {
		return errNoModule
	}
	m.mutex.Lock()
	loaded := m.loaded
	m.closed, m.loaded = true, nil
	m.mutex.Unlock()
	for _, on := range loaded {
		m.runtime.modules.leave(on)
	}
	return m.runtime.modules.collect()
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

// ForgetStream makes all modules do without a stream that is about to end: what was launched there is
// waited for by an event before one is unloaded.
func (r *Runtime) ForgetStream(s backends.Stream) (failed error) {
	if err := r.check(); err != nil {
		return err
	}
	l := &r.modules
	l.mutex.Lock()
	all := append(append([]*loadedModule(nil), l.open...), l.leaving...)
	l.mutex.Unlock()
	for _, m := range all {
		for _, w := range m.pending() {
			if unasked := r.unasked.Has(s); unasked && w.Ticket == nil && w.Stream == s {
				failed = errors.Join(failed, m.uses.Replace(order.Works{w}, w.UntilRest()))
			} else if w.Ticket == nil && w.Stream == s {
				//mutate:remove a module names a stream that has ended
				failed = errors.Join(failed, m.forget(w))
			}
		}
	}
	return failed
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
