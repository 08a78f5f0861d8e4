// Package nvml asks NVIDIA's management library, libnvidia-ml, which is looked for at run time, what
// the devices are and do: load, memory, temperature, power, clocks, processes. It is no backend, has
// no memory and makes no CUDA context.
//
// Errors are *backends.UnavailableError where there is no library, and else *backends.DeviceError
// with NVML's status; StatusOf finds it.
package nvml

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

const (
	// LibrarySetting is the library to load in place of libnvidia-ml.so.1, as an environment variable.
	LibrarySetting = "HAMR_NVML_LIBRARY"

	api           = "nvml"
	windowsFolder = "/usr/lib/wsl/lib"
)

// Library is NVML as a process uses it. It is safe for concurrent use. The zero value is no library:
// New makes one.
type Library struct {
	open func() (dl.Library, error)

	symbols sync.Map // addresses by name; zero for what the library has not

	mu         sync.RWMutex // held for reading by every query
	references int
	era        uint64 // of the references: handles end with the last one
}

// New returns a library that is loaded at the first Init. The setting is read through lookup.
func New(lookup func(string) string) *Library {
	l := &Library{}
	l.open = sync.OnceValues(func() (dl.Library, error) {
		tried := []string{"libnvidia-ml.so.1", "libnvidia-ml.so"}
		if _, err := os.Stat(windowsFolder); err == nil {
			tried = append(tried, windowsFolder+"/libnvidia-ml.so.1")
		}
		if override := lookup(LibrarySetting); override != "" {
			tried = []string{override}
		}
		found, err := dl.Open(tried, "")
		if err != nil {
			return nil, &backends.UnavailableError{Backend: api, Tried: tried, Reason: err.Error()}
		}
		return found, nil
	})
	return l
}

// StatusOf returns the status that an error of this package stands for: Success for nil,
// LibraryNotFound where there is no library, Unknown for what is none of its errors.
func StatusOf(err error) Status {
	var failed *backends.DeviceError
	switch {
	case err == nil:
		return Success
	case errors.Is(err, backends.ErrUnavailable):
		return LibraryNotFound
	case errors.As(err, &failed) && failed.API == api:
		return Status(failed.Code)
	}
	return Unknown
}

// function is the names of one function, the latest version first.
type function []string

var (
	initialise    = function{"nvmlInit_v2", "nvmlInit"}
	shutdown      = function{"nvmlShutdown"}
	errorString   = function{"nvmlErrorString"}
	driverVersion = function{"nvmlSystemGetDriverVersion"}
	nvmlVersion   = function{"nvmlSystemGetNVMLVersion"}
	cudaVersion   = function{"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"}
)

// Init loads the library at its first call, and initialises it if nothing of this Library's has it
// initialised. Shutdown ends each Init.
func (l *Library) Init() error {
	if _, err := l.open(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.references == 0 {
		if err := l.invoke(initialise); err != nil {
			return err
		}
		l.era++
	}
	l.references++
	return nil
}

// Shutdown ends one Init; with the last one the library forgets its devices. The status is
// Uninitialized if there is none to end.
func (l *Library) Shutdown() error {
	if _, err := l.open(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.references == 0 {
		return l.failure(shutdown[0], Uninitialized)
	}
	if l.references == 1 {
		if err := l.invoke(shutdown); err != nil {
			return err
		}
	}
	l.references--
	return nil
}

// Path returns the library's file; "" where there is none.
func (l *Library) Path() string {
	found, err := l.open()
	if err != nil {
		return ""
	}
	return found.Path()
}

// DriverVersion returns the version of the kernel driver, as "535.129.03".
func (l *Library) DriverVersion() (string, error) {
	return l.text(func(at *byte, size uintptr) error { return l.call(driverVersion, uintptr(unsafe.Pointer(at)), size) })
}

// Version returns NVML's own version, as "12.535.129.03".
func (l *Library) Version() (string, error) {
	return l.text(func(at *byte, size uintptr) error { return l.call(nvmlVersion, uintptr(unsafe.Pointer(at)), size) })
}

// CUDAVersion returns the version of CUDA that the driver supports: 12020 is 12.2.
func (l *Library) CUDAVersion() (int, error) {
	version := new(int32)
	err := l.call(cudaVersion, uintptr(unsafe.Pointer(version)))
	return int(*version), err
}

// find returns the address and the name of the latest version that the library has; zero if it has
// none.
func (l *Library) find(f function) (address uintptr, name string) {
	for _, name := range f {
		known, ok := l.symbols.Load(name)
		if !ok {
			known = uintptr(0)
			if library, err := l.open(); err == nil {
				if address, err := library.Symbol(name); err == nil {
					known = address
				}
			}
			l.symbols.Store(name, known)
		}
		if address, _ := known.(uintptr); address != 0 {
			return address, name
		}
	}
	return 0, f[0]
}

// call is invoke while the library is initialised.
//
//go:uintptrescapes
func (l *Library) call(f function, arguments ...uintptr) error {
	if _, err := l.open(); err != nil {
		return err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.references == 0 {
		return l.failure(f[0], Uninitialized)
	}
	return l.invoke(f, arguments...)
}

// invoke calls the latest version of a function that the library has.
//
//go:uintptrescapes
func (l *Library) invoke(f function, arguments ...uintptr) error {
	address, name := l.find(f)
	if address == 0 {
		return l.failure(name, FunctionNotFound)
	}
	if status := Status(int32(dl.Call(address, arguments...))); status != Success {
		return l.failure(name, status)
	}
	return nil
}

// failure is the error for a status that a call has returned, in the library's own words if it has any.
func (l *Library) failure(call string, status Status) error {
	words := status.Text()
	if address, _ := l.find(errorString); address != 0 {
		if at := dl.Call(address, uintptr(status)); at != 0 {
			words = textAt(at)
		}
	}
	return &backends.DeviceError{API: api, Call: call, Name: status.String(), Code: int(status), Message: words}
}

// Without is the error of a call that is made while its caller has not initialised the library.
func (l *Library) Without(call string) error {
	if _, err := l.open(); err != nil {
		return err
	}
	return l.failure(call, Uninitialized)
}

// Text says what a status means, in the library's words where it is there.
func (l *Library) Text(status Status) string {
	if _, err := l.open(); err != nil {
		return status.Text()
	}
	var failed *backends.DeviceError
	if errors.As(l.failure("", status), &failed) && failed.Message != "" {
		return failed.Message
	}
	return status.Text()
}

const (
	shortText = 96 // what each text of nvml.h fits in
	longText  = 6 * 1024
)

// text is what a function writes to a buffer of some size, which is made larger while it asks for more.
func (l *Library) text(write func(at *byte, size uintptr) error) (string, error) {
	for size := shortText; ; size *= 4 {
		buffer := make([]byte, size+1) // the last one stays zero
		err := write(unsafe.SliceData(buffer), uintptr(size))
		if StatusOf(err) == InsufficientSize && size < longText {
			continue
		}
		return untilZero(buffer), err
	}
}

func untilZero(text []byte) string {
	before, _, _ := bytes.Cut(text, []byte{0})
	return string(before)
}

// textAt returns the library's own text at an address, which is not copied.
func textAt(address uintptr) string {
	start := *(**byte)(unsafe.Pointer(&address))
	length := 0
	for length < longText && *(*byte)(unsafe.Add(unsafe.Pointer(start), length)) != 0 {
		length++
	}
	return string(unsafe.Slice(start, length))
}
