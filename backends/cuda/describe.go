package cuda

import (
	"strconv"
	"strings"
	"unsafe"

	"hamr/backends"
)

// MemoryInfo returns the free and total bytes of a device. What pools keep for
// reuse is not free.
func (b *contextFloor) MemoryInfo(device int) (free, total int64, err error) {
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, 0, err
	}
	defer v.leave()
	err = b.call(b.driver.MemGetInfo, v.slot(0), v.slot(1))
	return int64(v.out[0]), int64(v.out[1]), err
}

// Describe returns the facts name, uuid, compute_capability, memory (bytes), multiprocessors,
// pci_bus_id and driver (its CUDA version), in this order, and behind them, where there are
// any, as lacks the allocators that the device does not have.
func (b *contextFloor) Describe(number int) ([][2]string, error) {
	d, err := b.device(number)
	if err != nil {
		return nil, err
	}
	facts := make([][2]string, 0, 8)
	for _, fact := range []struct {
		name string
		text func(*device) (string, error)
	}{
		{"name", func(d *device) (string, error) { return b.deviceText(b.driver.DeviceGetName, d) }},
		{"uuid", b.uuid},
		{"compute_capability", b.computeCapability},
		{"memory", b.totalMemory},
		{"multiprocessors", b.multiprocessors},
		{"pci_bus_id", func(d *device) (string, error) { return b.deviceText(b.driver.DeviceGetPCIBusID, d) }},
		{"driver", func(*device) (string, error) { return b.dialect.VersionText(b.version), nil }},
	} {
		text, err := fact.text(d)
		if err != nil {
			return nil, err
		}
		facts = append(facts, [2]string{fact.name, text})
	}
	lacks, err := b.lacking(d)
	if err != nil {
		return nil, err
	}
	if len(lacks) > 0 {
		facts = append(facts, [2]string{"lacks", strings.Join(lacks, ", ")})
	}
	return facts, nil
}

// lacking names the allocators that a device does not have.
func (b *contextFloor) lacking(d *device) (names []string, err error) {
	for _, each := range []struct {
		allocator backends.Allocator
		needs     int
	}{
		{b.dialect.Allocators.Ordered, AttributeMemoryPools},
		{b.dialect.Allocators.Managed, AttributeManagedMemory},
		{b.dialect.Allocators.Growing, AttributeVirtualMemory},
	} {
		if each.allocator == backends.None {
			continue
		}
		able, err := b.attribute(d, each.needs)
		if err != nil {
			return nil, err
		}
		if able == 0 || (each.needs == AttributeVirtualMemory && !b.driver.managesAddresses()) ||
			(each.needs == AttributeMemoryPools && !b.driver.hasPools()) {
			names = append(names, each.allocator.String())
		}
	}
	return names, nil
}

// uuid is written as nvidia-smi does.
func (b *contextFloor) uuid(d *device) (string, error) {
	id, err := b.identity(d)
	return b.dialect.UUIDText(id), err
}

// Identity returns the UUID that nvidia-smi shows, of a part of a device where that is one.
func (b *contextFloor) Identity(number int) (backends.UUID, error) {
	d, err := b.device(number)
	if err != nil {
		return backends.UUID{}, err
	}
	return b.identity(d)
}

func (b *contextFloor) identity(d *device) (backends.UUID, error) {
	function := b.driver.DeviceGetInstanceUUID
	if function == 0 {
		function = b.driver.DeviceGetUUID
	}
	id := new(backends.UUID)
	err := b.callWithPointers(function, uintptr(unsafe.Pointer(id)), uintptr(d.handle))
	return *id, err
}

func (b *contextFloor) computeCapability(d *device) (string, error) {
	major, err := b.attribute(d, AttributeMajor)
	if err != nil {
		return "", err
	}
	minor, err := b.attribute(d, AttributeMinor)
	return strconv.Itoa(major) + "." + strconv.Itoa(minor), err
}

func (b *contextFloor) totalMemory(d *device) (string, error) {
	v := scratch()
	err := b.call(b.driver.DeviceTotalMem, v.slot(0), uintptr(d.handle))
	return strconv.FormatUint(v.out[0], 10), err
}

func (b *contextFloor) multiprocessors(d *device) (string, error) {
	count, err := b.attribute(d, AttributeMultiprocessors)
	return strconv.Itoa(count), err
}
