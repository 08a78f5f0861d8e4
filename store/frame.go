package store

import (
	"encoding/binary"
	"fmt"
)

// The wire format, which docs/store-protocol.md describes: packets of whole frames.
const (
	protocolVersion = 1
	headerBytes     = 16
	mostPacket      = 64 << 10
	mostPayload     = mostPacket - headerBytes
	mostDescriptors = 4
	mostMetadata    = 32 << 10 // unless ServerOptions say otherwise, and never more than 48 KiB
	mostName        = 255
)

// The operations: numbers are part of the wire format. A request and its reply have the same one.
const (
	opHello uint16 = 1 + iota
	opCreate
	opAttach
	opSeal
	opAbort
	opGet
	opRelease // has no reply
	opForget  // has no reply
	opDelete
	opPutName
	opGetName
	opDropName
	opExists
	opList
	opDescribe
	opSetMetadata
	opWait
	opEvents
	opStatistics
	opMark
	opHold
	opHoldUnit
	opGone // from the server alone, before a reply
	opRemember
	opUndo // has no reply
	opAfterLast
)

// The states of a reply.
const (
	statusDone uint16 = iota
	statusArgument
	statusNotFound
	statusNotSealed
	statusSealed
	statusDeleted
	statusNameTaken
	statusFull
	statusProtocol
	statusSystem
	statusRefused
)

// frame is one frame of a packet; its payload is the packet's memory.
type frame struct {
	operation uint16
	status    uint16
	request   uint64
	payload   []byte
}

// isAnswered reports whether a request has a reply.
func (f frame) isAnswered() bool {
	return f.operation != opRelease && f.operation != opForget && f.operation != opUndo
}

// nextFrame takes the first frame of a packet.
func nextFrame(packet []byte) (f frame, rest []byte, err error) {
	if len(packet) < headerBytes {
		return f, nil, &ProtocolError{fmt.Sprintf("%d bytes where a frame's header of %d is due", len(packet), headerBytes)}
	}
	length := binary.LittleEndian.Uint32(packet)
	f.operation = binary.LittleEndian.Uint16(packet[4:])
	f.status = binary.LittleEndian.Uint16(packet[6:])
	f.request = binary.LittleEndian.Uint64(packet[8:])
	rest = packet[headerBytes:]
	if int64(length) > int64(len(rest)) {
		return f, nil, &ProtocolError{fmt.Sprintf("a frame of %d bytes, where the packet has %d", length, len(rest))}
	}
	if f.operation == 0 || f.operation >= opAfterLast {
		return f, nil, &ProtocolError{fmt.Sprintf("operation %d", f.operation)}
	}
	f.payload = rest[:length:length]
	return f, rest[length:], nil
}

// encodeError appends what a reply says of an error, and returns its state.
func encodeError(e *encoder, err error) (status uint16) {
	switch err := err.(type) {
	case *ArgumentError:
		e.text(err.Argument)
		e.text(err.Value)
		e.text(err.Accepted)
		return statusArgument
	case *NotFoundError:
		e.id(err.ID)
		e.text(err.Name)
		return statusNotFound
	case *NotSealedError:
		e.id(err.ID)
		return statusNotSealed
	case *SealedError:
		e.id(err.ID)
		return statusSealed
	case *DeletedError:
		e.id(err.ID)
		return statusDeleted
	case *NameTakenError:
		e.text(err.Name)
		e.id(err.ID)
		return statusNameTaken
	case *FullError:
		e.text(err.Memory)
		e.u64(uint64(err.Needed))
		e.u64(uint64(err.Limit))
		e.u64(uint64(err.Used))
		e.u32(uint32(len(err.Holders)))
		for _, h := range err.Holders {
			e.u32(uint32(h.Process))
			e.u64(uint64(h.Bytes))
		}
		return statusFull
	case *ProtocolError:
		e.text(err.Problem)
		return statusProtocol
	case *RefusedError:
		e.text(err.Reason)
		return statusRefused
	case *SystemError:
		e.text(err.Problem)
		return statusSystem
	}
	e.text(err.Error())
	return statusSystem
}

func decodeError(status uint16, d *decoder) (err error) {
	switch status {
	case statusArgument:
		err = &ArgumentError{d.text(), d.text(), d.text()}
	case statusNotFound:
		err = &NotFoundError{d.id(), d.text()}
	case statusNotSealed:
		err = &NotSealedError{d.id()}
	case statusSealed:
		err = &SealedError{d.id()}
	case statusDeleted:
		err = &DeletedError{d.id()}
	case statusNameTaken:
		err = &NameTakenError{d.text(), d.id()}
	case statusFull:
		full := &FullError{Memory: d.text(), Needed: int64(d.u64()), Limit: int64(d.u64()), Used: int64(d.u64())}
		for range d.count(12) {
			full.Holders = append(full.Holders, Holder{int(d.u32()), int64(d.u64())})
		}
		err = full
	case statusProtocol:
		err = &ProtocolError{d.text()}
	case statusSystem:
		err = &SystemError{d.text()}
	case statusRefused:
		err = &RefusedError{"the store", d.text()}
	default:
		return &ProtocolError{fmt.Sprintf("a reply's state of %d", status)}
	}
	if broken := d.done(); broken != nil {
		return broken
	}
	return err
}
