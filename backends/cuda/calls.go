package cuda

import (
	"reflect"
	"runtime"
	"strings"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// The driver's special streams.
const (
	defaultStream   backends.Stream = 0 // the legacy one or the per-thread one: the caller's compiler decided
	legacyStream    backends.Stream = 1
	perThreadStream backends.Stream = 2
)

// shared names the default stream as the pool does; no other stream than this is special.
func shared(s backends.Stream) backends.Stream {
	if s == defaultStream {
		return legacyStream
	}
	return s
}

// callFloor is the floor of calls: the library, its dialect, and errors out of its codes. Each floor above embeds the
// one below it, and uses nothing of those above.
type callFloor struct {
	dialect *Dialect
	lookup  func(string) string

	// Set by Probe.
	introduction Introduction
	driver       EntryPoints
	onDevices    DeviceEntryPoints
	library      dl.Library
	version      int
}

// Name returns "cuda", or that of the dialect.
func (b *callFloor) Name() string { return b.dialect.Name }

// Library returns the driver's file.
func (b *callFloor) Library() string { return b.library.Path() }

// DriverVersion returns the CUDA version of the driver as the driver writes it:
// 13000 is 13.0. It is zero before Probe.
func (b *callFloor) DriverVersion() int { return b.version }

const ownSettings = "HAMR_CUDA_"

// setting is the dialect's name of a setting.
func (b *callFloor) setting(name string) string {
	if rest, own := strings.CutPrefix(name, ownSettings); own {
		return b.dialect.Settings + rest
	}
	return name
}

// native is the library's handle of a stream.
func (b *callFloor) native(s backends.Stream) uintptr {
	if s == legacyStream && b.dialect.LegacyIsNull {
		return 0
	}
	return uintptr(s)
}

// call calls a C entry point. Pointers among the arguments must point to heap memory that outlives the call, such as
// a visit's. Unlike callWithPointers, call does not ensure that, and allocates nothing.
func (b *callFloor) call(function uintptr, arguments ...uintptr) error {
	return b.finish(function, b.try(function, arguments...))
}

// try is call for entry points whose codes are answers. It returns the code, which is 32 bits wide: the upper bits of
// the register mean nothing.
func (b *callFloor) try(function uintptr, arguments ...uintptr) int32 {
	return b.invoke(function, arguments)
}

// invoke calls a C entry point. Where the library keeps each thread's last error, invoke removes that of this call,
// so that other libraries in the process do not take it for theirs.
func (b *callFloor) invoke(function uintptr, arguments []uintptr) int32 {
	if b.onDevices.GetLastError == 0 {
		return int32(dl.CallWith(function, arguments))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	code := int32(dl.CallWith(function, arguments))
	if code != success {
		dl.Call(b.onDevices.GetLastError)
	}
	return code
}

// callWithPointers is call for pointers to Go variables, converted to uintptr in
// the argument list.
//
//go:uintptrescapes
func (b *callFloor) callWithPointers(function uintptr, arguments ...uintptr) error {
	return b.finish(function, b.invoke(function, arguments))
}

// finish makes an error of a code that try returned.
func (b *callFloor) finish(function uintptr, code int32) error {
	if code == success {
		return nil
	}
	return b.failure(b.symbolAt(function), code)
}

// symbolAt returns the name of the entry point that has the address, so that no
// call needs to carry its name along for the errors.
func (b *callFloor) symbolAt(address uintptr) string {
	for functions, tagged := range map[any]reflect.Type{
		b.introduction: b.dialect.Introduction, b.driver: b.dialect.EntryPoints, b.onDevices: b.dialect.DeviceEntryPoints,
	} {
		if tagged == nil {
			continue
		}
		value := reflect.ValueOf(functions)
		for i := range value.NumField() {
			if value.Field(i).Uint() == uint64(address) {
				symbol, _, _ := strings.Cut(tagged.Field(i).Tag.Get("dl"), ",")
				return symbol
			}
		}
	}
	return "an unknown function"
}

// bind fills functions, such as EntryPoints, from the symbols that the tags of another type with the same fields
// name.
func bind[T any](library dl.Library, functions *T, tagged reflect.Type) error {
	bound := reflect.New(tagged)
	err := dl.Bind(library, bound.Interface())
	*functions = bound.Elem().Convert(reflect.TypeFor[T]()).Interface().(T)
	return err
}

// answered makes an answer of a code that says whether work is done.
func (b *callFloor) answered(function uintptr, arguments ...uintptr) (bool, error) {
	code := b.try(function, arguments...)
	if code == notReady {
		return false, nil
	}
	return code == success, b.finish(function, code)
}

func (b *callFloor) hasContexts() bool { return b.dialect.DeviceEntryPoints == nil }
