package openmp

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// Describe returns the facts name, kind (cpu of the host; of others no runtime tells) and uuid, where
// the runtime tells it, in this order.
func (b *Backend) Describe(device int) ([][2]string, error) {
	if device < 0 || device >= b.count {
		return nil, failure("Describe", invalid, fmt.Sprintf("there is no device %d", device))
	}
	facts := [][2]string{{"name", fmt.Sprintf("OpenMP device %d", device)}}
	if b.onHost {
		facts = [][2]string{{"name", "OpenMP's initial device, the host"}, {"kind", "cpu"}}
	}
	if id, err := b.Identity(device); err == nil {
		facts = append(facts, [2]string{"uuid", id.String()})
	}
	return facts, nil
}

// Identity returns the UUID that the runtime's unique identifier of the device holds, which it does of
// NVIDIA's devices.
func (b *Backend) Identity(device int) (id backends.UUID, err error) {
	err = b.on("omp_get_uid_from_device", device, func(number, _ uintptr) error {
		if b.library.GetUIDFromDevice == 0 || b.onHost {
			return errors.ErrUnsupported
		}
		text := dl.Call(b.library.GetUIDFromDevice, number)
		if text == 0 {
			return errors.ErrUnsupported
		}
		known := false
		if id, known = parseUID(unix.BytePtrToString((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&text))))); !known {
			return errors.ErrUnsupported
		}
		return nil
	})
	return id, err
}

// parseUID reads the UUID of one of NVIDIA's devices: GCC's runtime has it as "GPU-" and what NVIDIA's
// tools write, LLVM's as its plugin's name and the digits alone.
func parseUID(text string) (id backends.UUID, known bool) {
	digits, found := strings.CutPrefix(text, "GPU-")
	if !found {
		digits, found = strings.CutPrefix(text, "CUDA-")
	}
	plain := strings.ToLower(strings.ReplaceAll(digits, "-", ""))
	raw, err := hex.DecodeString(plain)
	if !found || err != nil || len(raw) != len(id) {
		return backends.UUID{}, false
	}
	copy(id[:], raw)
	return id, strings.ToLower(digits) == id.String() || len(digits) == len(plain)
}
