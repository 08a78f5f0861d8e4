// Package cuda serves memory of NVIDIA devices through the CUDA driver library
// alone, which is looked for at run time. It works in the devices' primary
// contexts, which the CUDA runtime and the libraries built on it use, too.
package cuda

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/forked"
)

const (
	oldestDriver  = 11020 // the first with memory pools
	windowsFolder = "/usr/lib/wsl/lib"
)

// Backend is backends.Backend for the allocators CUDA, CUDAAsync, CUDAUnified, CUDAHost and
// CUDAVMM, and implements Streams, Locator, Current, Contexts, Identified, Peers,
// MemoryReporter, Describer, PropertyReporter, Reuser, AtOnce, Grower, Sharer, PoolSharer, BatchCopier, BlockCopier,
// Stager, Launcher, Compiler, Pauser and Trimmer. Memory belongs to the caller until Free. All methods are
// safe for concurrent use, and leave the calling thread's current context as it
// was.
type Backend struct {
	pauseFloor

	loader dl.Loader
	probe  func() error
}

// New returns the backend. Probe reads the settings through lookup.
func New(lookup func(string) string) *Backend { return newOf(ofCUDA, lookup) }

func newOf(d *Dialect, lookup func(string) string) *Backend {
	b := &Backend{loader: dl.System}
	b.dialect, b.lookup = d, lookup
	b.extents.allocator, b.extents.lends = d.Allocators.Growing, d.Allocators.Plain
	b.probe = sync.OnceValue(b.load)
	return b
}

// Probe loads and initialises the driver at its first call. The error is an
// *backends.UnavailableError, or a *backends.ForkedError in a child whose parent
// had initialised the driver before the fork.
func (b *Backend) Probe() error { return b.probe() }

func libraryNames() []string {
	names := []string{"libcuda.so.1", "libcuda.so"}
	if _, err := os.Stat(windowsFolder); err == nil {
		names = append(names, windowsFolder+"/libcuda.so.1")
	}
	return names
}

func (b *Backend) load() error {
	tried := b.dialect.Libraries()
	override := b.lookup(b.setting(LibrarySetting))
	if override != "" {
		tried = []string{override}
	}
	unavailable := func(reason string) error {
		return &backends.UnavailableError{Backend: b.Name(), Tried: tried, Reason: reason}
	}
	if b.dialect.ForgetsForks && forked.Since(b.Name()) {
		return &backends.ForkedError{Backend: b.Name(), Reason: "its devices and threads are the parent's"}
	}
	library, err := dl.OpenWith(b.loader, tried, "")
	if err != nil {
		return unavailable(err.Error())
	}
	b.library = library
	if err := bind(library, &b.introduction, b.dialect.Introduction); err != nil {
		return unavailable(err.Error())
	}
	if err := b.initialise(); err != nil {
		var after *backends.ForkedError
		if errors.As(err, &after) {
			return err
		}
		return unavailable(err.Error())
	}
	if b.version < b.dialect.Oldest {
		written := b.dialect.VersionText
		return unavailable(fmt.Sprintf("%s is of %s %s, and %s is needed", library.Path(), strings.ToUpper(b.Name()),
			written(b.version), written(b.dialect.Oldest)))
	}
	if err := bind(library, &b.driver, b.dialect.EntryPoints); err != nil {
		return unavailable(err.Error())
	}
	if !b.hasContexts() {
		if err := bind(library, &b.onDevices, b.dialect.DeviceEntryPoints); err != nil {
			return unavailable(err.Error())
		}
	}
	b.withoutKernels = b.lookup(b.setting(KernelsSetting)) == "0" || b.dialect.Kernels == nil
	b.withoutPeers = b.lookup(b.setting(PeerSetting)) == "0"
	b.sharedPools = b.lookup(b.setting(PoolSharingSetting)) == "1"
	b.withoutReuse = !b.Reuses(b.dialect.Allocators.Plain)
	b.checksReuse = b.lookup(b.setting(PoolSetting)) == checkedPool
	if err := errors.Join(b.staging.Configure(b.Name(), b.lookup, b.model), b.readMany(), b.readGrid()); err != nil {
		return unavailable(err.Error())
	}
	if err := b.readReserve(); err != nil {
		return unavailable(err.Error())
	}
	if err := b.countDevices(); err != nil {
		return unavailable(err.Error())
	}
	if b.dialect.ForgetsForks {
		if err := forked.Mark(b.Name()); err != nil {
			return unavailable("no mark for forked children: " + err.Error())
		}
	}
	b.ready.Store(true)
	return nil
}

func (b *Backend) initialise() error {
	v := scratch()
	code := b.try(b.introduction.DriverVersion, v.slot(0))
	if code == notInitialized {
		return b.forked(code)
	}
	if err := b.finish(b.introduction.DriverVersion, code); err != nil {
		return err
	}
	b.version = int(int32(v.out[0]))
	if b.version < b.dialect.Oldest || b.introduction.Init == 0 {
		return nil
	}
	// The driver knows that it was initialised before a fork only through this.
	code = b.try(b.introduction.Init, 0)
	if code == notInitialized {
		return b.forked(code)
	}
	return b.finish(b.introduction.Init, code)
}

func (b *Backend) forked(code int32) error {
	return &backends.ForkedError{Backend: b.Name(), Reason: fmt.Sprintf("%s (%d)", b.nameOf(code), code)}
}

func (b *Backend) countDevices() error {
	v := scratch()
	if err := b.call(b.driver.DeviceGetCount, v.slot(0)); err != nil {
		return err
	}
	count := int(int32(v.out[0]))
	if count == 0 {
		return b.failure(b.symbolAt(b.driver.DeviceGetCount), noDevice)
	}
	b.devices = make([]*device, count)
	b.contexts = make([]atomic.Uintptr, count)
	for i := range b.devices {
		if err := b.call(b.driver.DeviceGet, v.slot(0), uintptr(i)); err != nil {
			return err
		}
		b.devices[i] = &device{number: i, handle: int32(v.out[0]), context: &b.contexts[i]}
	}
	return nil
}

func versionText(version int) string {
	return strconv.Itoa(version/1000) + "." + strconv.Itoa(version%1000/10)
}

// Shortcuts returns the driver's functions that need no help of the backend's; none of a library that
// is no CUDA driver.
func (b *Backend) Shortcuts() backends.Shortcuts {
	if !b.hasContexts() {
		return backends.Shortcuts{}
	}
	d := &b.driver
	s := backends.Shortcuts{CurrentDevice: d.CtxGetDevice, CurrentContext: d.CtxGetCurrent, SetContext: d.CtxSetCurrent,
		PointerAttributes: d.PointerGetAttributes,
		StreamQuery:       d.StreamQuery, StreamIsCapturing: d.StreamIsCapturing,
		EventCreate: d.EventCreate, EventRecord: d.EventRecord, EventQuery: d.EventQuery, StreamWaitEvent: d.StreamWaitEvent,
		MemcpyToHost: d.MemcpyToHost,
		LaunchKernel: d.LaunchKernel}
	if b.staging.Chunk > 0 {
		s.MemcpyToHost = 0 // somebody has chosen what is staged
	}
	if len(b.contexts) > 0 {
		s.PrimaryContexts = uintptr(unsafe.Pointer(unsafe.SliceData(b.contexts)))
	}
	return s
}

// Failed implements backends.Shortcutter.
func (b *Backend) Failed(function uintptr, code int32) error { return b.finish(function, code) }

// NewOf returns a backend that speaks a dialect. Probe reads the settings through lookup.
func NewOf(d *Dialect, lookup func(string) string) *Backend { return newOf(d, lookup) }

// ofCUDA is CUDA's own.
var ofCUDA = &Dialect{
	Name:         "cuda",
	Settings:     ownSettings,
	Libraries:    libraryNames,
	Oldest:       oldestDriver,
	VersionText:  versionText,
	Allocators:   Allocators{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified, backends.CUDAHost, backends.CUDAVMM},
	Introduction: reflect.TypeFor[Introduction](),
	EntryPoints:  reflect.TypeFor[EntryPoints](),
	CodeNames:    codeNames,
	UnknownCode:  "CUDA_ERROR_",
	UUIDText:     func(id backends.UUID) string { return "GPU-" + id.String() },
	Kernels:      func(_ dl.Library, name string) ([]byte, bool, error) { return textOf(name), false, nil },
}
