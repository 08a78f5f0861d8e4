package bridge

import (
	"sync/atomic"

	"hamr/backends"
	"hamr/backends/all"
	"hamr/gobuffer"
	"hamr/hetero"
)

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
// functions, so that C need not ask Go, and where Runtime.Words are.
var OnDevices func(count int, of backends.Shortcuts, words [3]uintptr)

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
			kept, trace, claims := Runtime.Words()
			OnDevices(count, known.Shortcuts(), [3]uintptr{kept, trace, claims})
			announced.Store(true)
		}
	}
}
