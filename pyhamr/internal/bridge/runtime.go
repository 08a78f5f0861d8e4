package bridge

import (
	"os"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/backends/all"
	"hamr/gobuffer"
	"hamr/hetero"
)

// Settings are the values of HAMR_… variables, and of others' that hamr reads: what Python or C said,
// else the environment of the process when it started.
var Settings settings

type settings struct {
	mutex sync.Mutex
	known map[string]string
}

// Set makes value what name is taken for.
func (s *settings) Set(name, value string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known == nil {
		s.known = map[string]string{}
	}
	s.known[name] = value
}

// Get returns what name is taken for.
func (s *settings) Get(name string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if value, ok := s.known[name]; ok {
		return value
	}
	return os.Getenv(name)
}

// Said reports whether anything was set.
func (s *settings) Said() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.known) > 0
}

// Runtime is the one that Python's buffers live in.
var Runtime = newRuntime()

func newRuntime() *gobuffer.Runtime {
	r, err := gobuffer.NewRuntime(all.NewWith(Settings.Get)...)
	if err != nil {
		panic(err)
	}
	return r
}

// Scheduler is what Python's scheduling shares its streams and events with.
var Scheduler = hetero.New(Runtime)

// OnDevices is told, once CUDA is in use, how many devices there are and the driver's
// functions, so that C need not ask Go, and Words.
var OnDevices func(count int, of backends.Shortcuts, words [4]uintptr)

// Words are the addresses that Runtime.Words and Runtime.PausableWord return.
func Words() [4]uintptr {
	kept, trace, claims := Runtime.Words()
	return [4]uintptr{kept, trace, claims, Runtime.PausableWord()}
}

var announced atomic.Bool

// DownloadFailed is what a code of Shortcuts.MemcpyToHost stands for.
func DownloadFailed(code int32) error {
	for _, b := range Runtime.Backends() {
		if known, ok := backends.As[backends.Shortcutter](b); ok && known.Shortcuts().MemcpyToHost != 0 {
			return known.Failed(known.Shortcuts().MemcpyToHost, code)
		}
	}
	return nil
}

func announceDevices() {
	if OnDevices == nil || announced.Load() {
		return
	}
	for _, b := range Runtime.Backends() {
		known, ok := backends.As[backends.Shortcutter](b)
		if !ok || b.Probe() != nil || known.Shortcuts() == (backends.Shortcuts{}) {
			continue
		}
		if count, err := b.DeviceCount(); err == nil {
			OnDevices(count, known.Shortcuts(), Words())
			announced.Store(true)
		}
	}
}
