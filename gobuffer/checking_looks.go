package gobuffer

import (
	"runtime"
	"unsafe"

	"hamr/backends"
)

// look reports what of kept memory was written to.
func (c *Checker) look(k *keptMemory) {
	if k.over != nil && k.over.Wait() != nil {
		return // the device has failed, as others are told
	}
	c.witness.looks(k.memory)
	offset, count, value, err := k.differs()
	if err != nil || count == 0 {
		return
	}
	m := k.memory
	c.tell(Misuse{Library: m.library, Region: m.region, Size: k.size, Stream: k.stream,
		Offset: offset, Bytes: count, Value: value, Allocated: k.lives.allocated, Freed: k.lives.freed})
}

// differs counts the bytes that are no poison, from the first one on.
func (k *keptMemory) differs() (offset, count int, value byte, err error) {
	m := k.memory
	compare := func(at int, part []byte) {
		for i, b := range part {
			if b == Poison {
				continue
			}
			if count == 0 {
				offset, value = at+i, b
			}
			count++
		}
	}
	device, stream := m.context(), backends.Stream(0)
	if m.streams != nil {
		stream, err = m.streams.Resolve(device, 0)
	} else if m.region.Device == backends.HostDevice {
		compare(0, hostBytes(m.region.Address, k.size))
		return offset, count, value, nil
	}
	if err != nil {
		return 0, 0, 0, err
	}
	part := make([]byte, min(readPart, k.size))
	var pinned runtime.Pinner // few bytes would be on a stack, which moves
	pinned.Pin(&part[0])
	defer pinned.Unpin()
	at := backends.Address(uintptr(unsafe.Pointer(&part[0])))
	to := backends.Region{Address: at, Allocator: backends.Malloc, Device: backends.HostDevice}
	for at := 0; at < k.size; at += len(part) {
		n := min(len(part), k.size-at)
		from := m.region
		from.Address += backends.Address(at)
		left, err := m.backend.Copy(to, from, n, stream)
		if err == nil && left != backends.Complete && m.streams != nil {
			err = m.streams.Synchronize(device, stream)
		}
		if err != nil {
			return 0, 0, 0, err
		}
		compare(at, part[:n])
	}
	return offset, count, value, nil
}

func (c *Checker) tell(found Misuse) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.found) >= mostFound {
		c.lost++
		return
	}
	c.found = append(c.found, found)
}
