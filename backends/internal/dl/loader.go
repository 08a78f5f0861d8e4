// Package dl finds vendor libraries at run time and binds their functions. It
// is the only importer of purego, so that how symbols are called can change in
// one place.
package dl

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is a loaded shared library. It is never unloaded, because vendor
// runtimes keep threads and exit handlers; its methods are safe for concurrent
// use.
type Library interface {
	// Path returns the file that was loaded, or the name it was asked for where
	// the loader does not tell.
	Path() string
	// Symbol returns the address of name, or the loader's words for its absence.
	Symbol(name string) (uintptr, error)
}

// Loader loads one library by soname or path. Tests put their own in place of
// System to do without the library.
type Loader interface {
	Load(name string) (Library, error)
}

// System is the dynamic loader of this process.
var System Loader = systemLoader{}

type systemLoader struct{}

func (systemLoader) Load(name string) (Library, error) {
	// dlerror is kept per thread: the call and its error must share one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	return &systemLibrary{handle: handle, path: loadedPath(handle, name)}, nil
}

type systemLibrary struct {
	handle uintptr
	path   string
}

func (l *systemLibrary) Path() string { return l.path }

func (l *systemLibrary) Symbol(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlsym(l.handle, name)
}

// linkMap is the documented head of the C library's struct link_map.
type linkMap struct {
	_    uintptr // load address
	name *byte
}

const requestLinkMap = 2 // RTLD_DI_LINKMAP, the same in glibc and musl

// loadedPath asks the loader which file a soname turned out to be: a report
// that says "libcuda.so.1" does not tell a stub from the driver.
func loadedPath(handle uintptr, name string) string {
	if runtime.GOOS != "linux" {
		return name
	}
	dlinfo, err := purego.Dlsym(purego.RTLD_DEFAULT, "dlinfo")
	if err != nil {
		return name
	}
	var call func(handle uintptr, request int32, info **linkMap) int32
	purego.RegisterFunc(&call, dlinfo)
	var entry *linkMap
	if call(handle, requestLinkMap, &entry) != 0 || entry == nil || entry.name == nil {
		return name
	}
	if path := Text(entry.name); path != "" {
		return path
	}
	return name
}

// Text returns a C string, which ends with a zero byte. It returns "" for NULL.
func Text(at *byte) string {
	if at == nil {
		return ""
	}
	length := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(at), length)) != 0 {
		length++
	}
	return string(unsafe.Slice(at, length))
}
