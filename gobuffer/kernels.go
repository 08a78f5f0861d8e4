package gobuffer

import (
	"errors"
	"fmt"
	"slices"
	"sync"

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
	loaded map[int]moduleOn
}

// moduleOn is a module on one device, with the kernels of it that were asked for.
type moduleOn struct {
	*loadedModule
	kernels map[string]*Kernel
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
	return &Module{runtime: r, backend: b, launcher: launcher, streams: streams, image: slices.Clone(image),
		loaded: map[int]moduleOn{}}, nil
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
	k := &Kernel{module: m, on: on.loadedModule, handle: handle, name: name, facts: facts}
	k.shared.Store(int64(facts.Shared))
	on.kernels[name] = k
	return k, nil
}

// load is called with the mutex held.
func (m *Module) load(device int) (moduleOn, error) {
	if on, is := m.loaded[device]; is {
		return on, nil
	}
	_ = m.runtime.modules.collect()
	handle, err := m.launcher.LoadModule(device, m.image)
	if err != nil {
		return moduleOn{}, err
	}
	on := moduleOn{&loadedModule{launcher: m.launcher, device: device, handle: handle}, map[string]*Kernel{}}
	m.loaded[device] = on
	m.runtime.modules.add(on.loadedModule)
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
		m.runtime.modules.leave(on.loadedModule)
	}
	return m.runtime.modules.collect()
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
