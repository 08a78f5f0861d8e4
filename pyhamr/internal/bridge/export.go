package bridge

import (
	"encoding/hex"
	"fmt"

	"hamr/backends"
	"hamr/gobuffer"
)

// ExportMemory returns how far into its allocation an address is, and by what other processes open the allocation.
func ExportMemory(a backends.Allocator, device int, at backends.Address) (_ Rows, err error) {
	defer Guard(&err)
	able, err := exporter(a)
	if err != nil {
		return nil, err
	}
	found, offset, err := able.Export(backends.Region{Address: at, Allocator: a, Device: device})
	return one(offset, hex.EncodeToString(found)), err
}

// Import maps memory, least bytes and more, that ExportMemory, in whatever process, has given the handle of. It is the
// caller's to free by the allocator.
func Import(a backends.Allocator, device int, handle string, least int) (at backends.Address, err error) {
	defer Guard(&err)
	able, err := exporter(a)
	if err != nil {
		return 0, err
	}
	raw, err := hex.DecodeString(handle)
	if err != nil {
		return 0, &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "handle", Value: fmt.Sprintf("%q", handle),
			Accepted: "what Export returned"}
	}
	opened, err := able.Import(raw, device, least)
	return opened.Address, err
}

func exporter(a backends.Allocator) (able backends.Exporter, err error) {
	b, err := Runtime.Backend(a)
	if err != nil {
		return nil, err
	}
	able, ok := backends.As[backends.Exporter](b)
	if !ok || !a.Facts().Exportable {
		return nil, &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "allocator", Value: a.String(),
			Accepted: "one whose memory other processes can open"}
	}
	return able, nil
}
