package openmp

import (
	"golang.org/x/sys/unix"

	"hamr/backends"
)

// invalid is what a runtime returns for a device that it does not have.
const invalid = int32(unix.EINVAL)

// failure makes an error of what a routine returned: GCC's runtime returns numbers of errno.h, LLVM's -1.
func failure(call string, code int32, message string) error {
	text := "an unknown code"
	if known := unix.ErrnoName(unix.Errno(code)); code > 0 && known != "" {
		text = known
	} else if code == -1 {
		text = "OFFLOAD_FAIL"
	}
	return &backends.DeviceError{API: name, Call: call, Name: text, Code: int(code), Message: message}
}
