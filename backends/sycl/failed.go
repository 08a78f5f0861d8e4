package sycl

/*
#include <stdatomic.h>
#include <stdint.h>

static _Atomic int32_t failed;

// SYCL calls it on threads of its own for errors after a call has returned. Without a handler SYCL ends the program.
static void keep(int code) {
	int32_t none = 0;
	if (!code) code = 1;
	atomic_compare_exchange_strong(&failed, &none, (int32_t)code);
}

static uintptr_t handler(void) { return (uintptr_t)keep; }
static int32_t taken(void) { return atomic_exchange(&failed, 0); }
*/
import "C"

import (
	"fmt"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// handler is the address of the C function for asynchronous exceptions of queues and contexts.
func handler() uintptr { return uintptr(C.handler()) }

// late returns the first asynchronous exception since the last call, or nil. The handler gets a code and no queue, so
// the next caller who waits gets the error.
func (b *Backend) late(function uintptr) error {
	if code := int(C.taken()); code != 0 {
		return &backends.DeviceError{API: name, Call: dl.SymbolOf(&b.library, function), Name: nameOf(code), Code: code,
			Message: "an asynchronous exception, of this queue or of another one"}
	}
	return nil
}

// codeNames are sycl::errc of SYCL 2020.
var codeNames = [...]string{
	1: "runtime", 2: "kernel", 3: "accessor", 4: "nd_range", 5: "event", 6: "kernel_argument", 7: "build", 8: "invalid",
	9: "memory_allocation", 10: "platform", 11: "profiling", 12: "feature_not_supported", 13: "kernel_not_supported",
	14: "backend_mismatch",
}

func nameOf(code int) string {
	if code > 0 && code < len(codeNames) {
		return "errc::" + codeNames[code]
	}
	return "an unknown code"
}

// The code for what this package refuses itself.
const codeInvalid = 8

func invalid(call, message string) error {
	return &backends.DeviceError{API: name, Call: call, Name: nameOf(codeInvalid), Code: codeInvalid, Message: message}
}

// refused returns the error for a call that returned nothing, for which the interface gives no reason.
func (b *Backend) refused(function uintptr) error {
	return &backends.DeviceError{API: name, Call: dl.SymbolOf(&b.library, function), Name: "an exception",
		Message: fmt.Sprintf("with %s=error in the environment the library prints which", verbositySetting)}
}
