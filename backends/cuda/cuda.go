// Package cuda serves memory of NVIDIA devices through the CUDA driver library
// alone, which is looked for at run time. It works in the devices' primary
// contexts, which the CUDA runtime and the libraries built on it use, too.
package cuda

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/forked"
	"hamr/backends/internal/pool"
	"hamr/backends/internal/staging"
)

// The settings, as names of environment variables.
const (
	// LibrarySetting is the driver library to load in place of the usual ones.
	LibrarySetting = "HAMR_CUDA_LIBRARY"
	// ThresholdSetting is how many bytes of freed memory each of a device's two pools,
	// the driver's and that of plain memory, keeps for reuse. The default is a
	// thirty-second of the device's memory.
	ThresholdSetting = "HAMR_CUDA_POOL_RELEASE_THRESHOLD"
	// PoolSetting says with "0" that plain device memory and page-locked memory are taken
	// from the driver and given back each time, and with "check" that memory which is given back is
	// overwritten, so that whoever uses it still reads something else.
	PoolSetting = "HAMR_CUDA_POOL"
	// PoolLimitSetting is how many bytes of plain memory each device's pool may take
	// from the driver. The default is no limit.
	PoolLimitSetting = "HAMR_CUDA_POOL_LIMIT"
	// GrowthSetting is how many bytes of addresses each allocation of CUDAVMM reserves, at
	// least its size. The default is as many as the device has memory.
	GrowthSetting = "HAMR_CUDA_VMM_RESERVE"
	// PinnedPoolLimitSetting is how many bytes of page-locked memory may be taken from the
	// driver. The default is no limit.
	PinnedPoolLimitSetting = "HAMR_PINNED_POOL_LIMIT"
	// PinnedThresholdSetting is how many bytes of freed page-locked memory are kept for reuse.
	// The default is a sixteenth of the host's memory.
	PinnedThresholdSetting = "HAMR_PINNED_POOL_RELEASE_THRESHOLD"
	// PoolSharingSetting says with "1" that other processes can import memory of the driver's pools,
	// which may keep what is freed then, whatever ThresholdSetting says.
	PoolSharingSetting = "HAMR_CUDA_POOL_SHARED"
	// PeerSetting says with "0" that devices are not to reach each other's memory:
	// copies between them go through the host.
	PeerSetting = "HAMR_CUDA_PEER_ACCESS"
)

const (
	oldestDriver  = 11020 // the first with memory pools
	windowsFolder = "/usr/lib/wsl/lib"
)

// Backend is backends.Backend for the allocators CUDA, CUDAAsync, CUDAUnified, CUDAHost and
// CUDAVMM, and implements Streams, Locator, Current, Contexts, Identified, Peers,
// MemoryReporter, Describer, PropertyReporter, Reuser, AtOnce, Grower, Sharer, PoolSharer, BatchCopier,
// Stager, Launcher, Compiler and Trimmer. Memory belongs to the caller until Free. All methods are
// safe for concurrent use, and leave the calling thread's current context as it
// was.
type Backend struct {
	dialect *Dialect
	lookup  func(string) string
	loader  dl.Loader
	probe   func() error

	// Set by Probe.
	introduction Introduction
	driver       EntryPoints
	onDevices    DeviceEntryPoints
	library      dl.Library
	version      int
	devices      []*device
	ready        atomic.Bool      // all of these are set
	contexts     []atomic.Uintptr // primary ones, by device; zero until they are retained

	staging        staging.Engine
	pinned         atomic.Pointer[pool.Pool] // see pinnedPool
	ownPages       sync.Map                  // the size of each mapping that lock has made, by address
	withoutKernels bool                      // see KernelsSetting
	withoutPeers   bool                      // see PeerSetting
	sharedPools    bool                      // see PoolSharingSetting
	withoutReuse   bool                      // see PoolSetting
	checksReuse    bool                      // likewise
	manyBy         way                       // see ManySetting
	reserve        int                       // see GrowthSetting; zero is the default

	streams      ownStreams
	kept         keptStreams
	substitutes  substitutes
	timed        timedEvents
	peers        peers
	extents      extents
	foreignPools foreignPools

	foreignAllocations foreignAllocations
}

// New returns the backend. Probe reads the settings through lookup.
func New(lookup func(string) string) *Backend { return newOf(ofCUDA, lookup) }

func newOf(d *Dialect, lookup func(string) string) *Backend {
	b := &Backend{dialect: d, lookup: lookup, loader: dl.System, extents: extents{allocator: d.Allocators.Growing}}
	b.probe = sync.OnceValue(b.load)
	return b
}

// Name returns "cuda", or that of the dialect.
func (b *Backend) Name() string { return b.dialect.Name }

// Probe loads and initialises the driver at its first call. The error is an
// *backends.UnavailableError, or a *backends.ForkedError in a child whose parent
// had initialised the driver before the fork.
func (b *Backend) Probe() error { return b.probe() }

// Library returns the driver's file.
func (b *Backend) Library() string { return b.library.Path() }

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
		return unavailable(fmt.Sprintf("%s is of %s %s, and %s is needed", library.Path(), strings.ToUpper(b.Name()), written(b.version), written(b.dialect.Oldest)))
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
	if err := errors.Join(b.staging.Configure(b.Name(), b.lookup, b.model), b.readMany()); err != nil {
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

// DeviceCount returns how many devices the driver shows to this process.
func (b *Backend) DeviceCount() (int, error) { return len(b.devices), nil }

// DriverVersion returns the CUDA version of the driver as the driver writes it:
// 13000 is 13.0. It is zero before Probe.
func (b *Backend) DriverVersion() int { return b.version }

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
	s := backends.Shortcuts{CurrentDevice: d.CtxGetDevice, CurrentContext: d.CtxGetCurrent, SetContext: d.CtxSetCurrent, PointerAttributes: d.PointerGetAttributes,
		StreamQuery: d.StreamQuery, StreamIsCapturing: d.StreamIsCapturing,
		EventCreate: d.EventCreate, EventRecord: d.EventRecord, EventQuery: d.EventQuery, StreamWaitEvent: d.StreamWaitEvent, MemcpyToHost: d.MemcpyToHost,
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
