package gobuffer

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"hamr/backends"
	"hamr/gobuffer/internal/backing"
	"hamr/gobuffer/internal/modules"
)

// Module is code with kernels. It is loaded into a device when a kernel is first used there. It is safe for concurrent
// use.
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
	*modules.Loaded
	kernels map[string]*Kernel
}

// NewModule returns a module of a backend: text or a binary, as the vendor's compilers make it. It is not looked at
// before a kernel of it is asked for. If the backend runs no kernels the error is errors.ErrUnsupported.
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

// Kernel returns a kernel on a device. The device keeps its code as long as the module is open.
func (m *Module) Kernel(device int, name string) (*Kernel, error) {
	if m == nil || m.runtime == nil {
		return nil, errNoModule
	}
	count, err := m.backend.DeviceCount()
	if err != nil {
		return nil, err
	}
	if device < 0 || device >= count {
		return nil, backing.NoDevice(device, count, m.backend.Name())
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
	handle, err := m.launcher.Function(device, on.Handle, name)
	if errors.Is(err, backends.ErrNoFunction) {
		return nil, valueError("name", fmt.Sprintf("%q", name),
			"a kernel of the module's: C++ gives others than extern \"C\" longer names")
	}
	if err != nil {
		return nil, err
	}
	facts, err := m.launcher.FunctionFacts(device, handle)
	if err != nil {
		return nil, err
	}
	k := &Kernel{module: m, on: on.Loaded, handle: handle, name: name, facts: facts}
	k.shared.Store(int64(facts.Shared))
	on.kernels[name] = k
	return k, nil
}

// load is called with the mutex held.
func (m *Module) load(device int) (moduleOn, error) {
	if on, is := m.loaded[device]; is {
		return on, nil
	}
	_ = m.runtime.modules.Collect()
	handle, err := m.launcher.LoadModule(device, m.image)
	if err != nil {
		return moduleOn{}, err
	}
	on := moduleOn{&modules.Loaded{Launcher: m.launcher, Device: device, Handle: handle}, map[string]*Kernel{}}
	m.loaded[device] = on
	m.runtime.modules.Add(on.Loaded)
	if m.runtime.tracing() {
		m.runtime.tracef("load a module of %d bytes into %s device %d", len(m.image), m.backend.Name(), device)
	}
	return on, nil
}

// Close ends the module, and unloads it if its kernels are done. A module with kernels that have yet to run is unloaded
// later: when another module is loaded or closed, or by ReleasePostponed. A module whose kernels are part of a graph
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
		m.runtime.modules.Leave(on.Loaded)
	}
	return m.runtime.modules.Collect()
}

// ForgetStream makes all modules independent of a stream that is about to end. Before a module is unloaded, an event is
// waited for in place of what was launched there.
func (r *Runtime) ForgetStream(s backends.Stream) error {
	if err := r.check(); err != nil {
		return err
	}
	return r.modules.Forget(s, r.unasked.Has(s))
}
