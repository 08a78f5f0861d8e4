package sycl

import (
	"slices"
	"strconv"
	"strings"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// Describe returns the facts name, platform, kind (gpu, accelerator, cpu, other), runtime (what SYCL
// works by: level_zero, opencl, cuda, hip), memory (bytes), multiprocessors (SYCL's compute units),
// version and driver, in this order; behind them lacks, the allocators that it does not have.
func (b *Backend) Describe(number int) ([][2]string, error) {
	d, err := b.numbered("Describe", number)
	if err != nil {
		return nil, err
	}
	platform, err := b.made(b.library.DevicePlatform, d.handle)
	if err != nil {
		return nil, err
	}
	defer dl.Call(b.library.DeletePlatform, platform)
	facts := [][2]string{
		{"name", strings.TrimSpace(b.text(b.library.DeviceName, d.handle))},
		{"platform", b.text(b.library.PlatformName, platform)},
		{"kind", d.kindName()},
		{"runtime", b.runtimeOf(d)},
		{"memory", figure(uint64(dl.Call(b.library.DeviceMemory, d.handle)))},
		{"multiprocessors", figure(uint64(uint32(dl.Call(b.library.DeviceUnits, d.handle))))},
		{"version", b.text(b.library.PlatformVersion, platform)},
		{"driver", b.text(b.library.DeviceDriver, d.handle)},
	}
	var lacks []string
	for a := range d.lacks {
		lacks = append(lacks, a.String())
	}
	if slices.Sort(lacks); lacks != nil {
		facts = append(facts, [2]string{"lacks", strings.Join(lacks, ", ")})
	}
	return facts, nil
}

func figure(n uint64) string { return strconv.FormatUint(n, 10) }

func (b *Backend) largest(d *device) uint64 {
	return uint64(dl.Call(b.library.DeviceLargest, d.handle))
}

func (b *Backend) runtimeOf(d *device) string {
	switch number := uint32(dl.Call(b.library.DeviceBackend, d.handle)); number {
	case backendLevelZero:
		return "level_zero"
	case backendOpenCL:
		return "opencl"
	case backendCUDA:
		return backends.SpaceCUDA.String()
	case backendHIP:
		return backends.SpaceHIP.String()
	default:
		return strconv.FormatUint(uint64(number), 10)
	}
}
