package opencl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hamr/backends"
)

// Describe returns the facts name, platform, kind (gpu, accelerator, cpu, other), memory (bytes),
// multiprocessors (OpenCL's compute units), version, driver and shared_memory (usm, fine, coarse or
// none), in this order; before memory the uuid, where the device has one, and behind all lacks,
// the allocators that it does not have.
func (b *Backend) Describe(number int) ([][2]string, error) {
	if number < 0 || number >= len(b.devices) {
		return nil, failure("Describe", invalidDevice, fmt.Sprintf("there is no device %d", number))
	}
	d := b.devices[number]
	var failed error
	text := func(what uintptr) string {
		t, err := b.text(d, what)
		failed = errors.Join(failed, err)
		return t
	}
	figure := func(what uintptr) string {
		n, err := b.number(d, what)
		failed = errors.Join(failed, err)
		return strconv.FormatUint(n, 10)
	}
	platform, err := b.platformText(d.platform, platformName)
	failed = errors.Join(failed, err)
	facts := [][2]string{{"name", text(deviceName)}, {"platform", platform}, {"kind", d.kindName()}}
	if id, err := b.Identity(number); err == nil {
		facts = append(facts, [2]string{"uuid", id.String()})
	}
	facts = append(facts, [][2]string{
		{"memory", figure(deviceMemory)},
		{"multiprocessors", figure(deviceUnits)},
		{"version", text(deviceVersion)},
		{"driver", text(driverVersion)},
		{"shared_memory", modelNames[d.memory]},
	}...)
	if d.memory == noMemory {
		lacks := []string{backends.OpenCLDevice.String(), backends.OpenCLSVM.String()}
		facts = append(facts, [2]string{"lacks", strings.Join(lacks, ", ")})
	}
	return facts, failed
}

// Identity returns the UUID of cl_khr_device_uuid, which is the same in Vulkan and CUDA.
func (b *Backend) Identity(number int) (id backends.UUID, err error) {
	if number < 0 || number >= len(b.devices) {
		return id, failure("Identity", invalidDevice, fmt.Sprintf("there is no device %d", number))
	}
	d := b.devices[number]
	extensions, err := b.text(d, deviceExtensions)
	if err != nil {
		return id, err
	}
	if !hasExtension(extensions, extensionUUID) {
		return id, errors.ErrUnsupported
	}
	value, code := info(b.library.GetDeviceInfo, d.handle, deviceUUID)
	if code != success || len(value) != len(id) {
		return id, failure("clGetDeviceInfo", code, "")
	}
	copy(id[:], value)
	if id == (backends.UUID{}) {
		return id, errors.ErrUnsupported
	}
	return id, nil
}
