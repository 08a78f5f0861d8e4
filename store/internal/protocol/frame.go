package protocol

import (
	"encoding/binary"
	"fmt"
)

// The wire format, which docs/store-protocol.md describes: packets of whole frames.
const (
	ProtocolVersion = 1
	HeaderBytes     = 16
	MostPacket      = 64 << 10
	MostPayload     = MostPacket - HeaderBytes
	MostDescriptors = 4
	MostMetadata    = 32 << 10 // unless ServerOptions say otherwise
	LargestMetadata = 48 << 10 // that they may say
	MostName        = 255
	MostUndone      = 8 // requests of late that can be undone
)

// The operations: numbers are part of the wire format. A request and its reply have the same one.
const (
	OpHello uint16 = 1 + iota
	OpCreate
	OpAttach
	OpSeal
	OpAbort
	OpGet
	OpRelease // has no reply
	OpForget  // has no reply
	OpDelete
	OpPutName
	OpGetName
	OpDropName
	OpExists
	OpList
	OpDescribe
	OpSetMetadata
	OpWait
	OpEvents
	OpStatistics
	OpMark
	OpHold
	OpHoldUnit
	OpGone // from the server alone, before a reply
	OpRemember
	OpUndo // has no reply
	opAfterLast
)

// What OpPutName does beside giving the name.
const (
	NameReplaces uint8 = 1 << iota // another object may have it
	NameDeletes                    // that object is deleted, unless it has other names; with NameReplaces
	NameLasts                      // the named object does not end with its session any more
	allOfNaming  = NameReplaces | NameDeletes | NameLasts
)

// Naming reads what OpPutName is to do.
func (d *Decoder) Naming() uint8 {
	flags := d.U8()
	if flags&^allOfNaming != 0 || flags&(NameReplaces|NameDeletes) == NameDeletes {
		d.Fail("flags of a name %#x", flags)
	}
	return flags
}

// How OpDelete deletes.
const (
	DeletesByForce uint8 = 1 + iota
	DeletesUnnamed       // nothing where the object has a name
)

// What OpMark changes.
const (
	MarkPinned uint8 = iota
	MarkEvictable
)

// The states of a reply.
const (
	StatusDone uint16 = iota
	statusArgument
	StatusNotFound
	statusNotSealed
	statusSealed
	statusDeleted
	statusNameTaken
	statusFull
	StatusProtocol
	statusSystem
	statusRefused
)

// Frame is one frame of a packet; its payload is the packet's memory.
type Frame struct {
	Operation uint16
	Status    uint16
	Request   uint64
	Payload   []byte
}

// IsAnswered reports whether a request has a reply.
func (f Frame) IsAnswered() bool {
	return f.Operation != OpRelease && f.Operation != OpForget && f.Operation != OpUndo
}

// NextFrame takes the first frame of a packet.
func NextFrame(packet []byte) (f Frame, rest []byte, err error) {
	if len(packet) < HeaderBytes {
		return f, nil, &ProtocolError{fmt.Sprintf("%d bytes where a frame's header of %d is due", len(packet), HeaderBytes)}
	}
	length := binary.LittleEndian.Uint32(packet)
	f.Operation = binary.LittleEndian.Uint16(packet[4:])
	f.Status = binary.LittleEndian.Uint16(packet[6:])
	f.Request = binary.LittleEndian.Uint64(packet[8:])
	rest = packet[HeaderBytes:]
	if int64(length) > int64(len(rest)) {
		return f, nil, &ProtocolError{fmt.Sprintf("a frame of %d bytes, where the packet has %d", length, len(rest))}
	}
	if f.Operation == 0 || f.Operation >= opAfterLast {
		return f, nil, &ProtocolError{fmt.Sprintf("operation %d", f.Operation)}
	}
	f.Payload = rest[:length:length]
	return f, rest[length:], nil
}

// EncodeError appends what a reply says of an error, and returns its state.
func EncodeError(e *Encoder, err error) (status uint16) {
	switch err := err.(type) {
	case *ArgumentError:
		e.Text(err.Argument)
		e.Text(err.Value)
		e.Text(err.Accepted)
		return statusArgument
	case *NotFoundError:
		e.ID(err.ID)
		e.Text(err.Name)
		return StatusNotFound
	case *NotSealedError:
		e.ID(err.ID)
		return statusNotSealed
	case *SealedError:
		e.ID(err.ID)
		return statusSealed
	case *DeletedError:
		e.ID(err.ID)
		return statusDeleted
	case *NameTakenError:
		e.Text(err.Name)
		e.ID(err.ID)
		return statusNameTaken
	case *FullError:
		e.Text(err.Memory)
		e.U64(uint64(err.Needed))
		e.U64(uint64(err.Limit))
		e.U64(uint64(err.Used))
		e.U32(uint32(len(err.Holders)))
		for _, h := range err.Holders {
			e.U32(uint32(h.Process))
			e.U64(uint64(h.Bytes))
		}
		return statusFull
	case *ProtocolError:
		e.Text(err.Problem)
		return StatusProtocol
	case *RefusedError:
		e.Text(err.Reason)
		return statusRefused
	case *SystemError:
		e.Text(err.Problem)
		return statusSystem
	}
	e.Text(err.Error())
	return statusSystem
}

func DecodeError(status uint16, d *Decoder) (err error) {
	switch status {
	case statusArgument:
		err = &ArgumentError{d.Text(), d.Text(), d.Text()}
	case StatusNotFound:
		err = &NotFoundError{d.ID(), d.Text()}
	case statusNotSealed:
		err = &NotSealedError{d.ID()}
	case statusSealed:
		err = &SealedError{d.ID()}
	case statusDeleted:
		err = &DeletedError{d.ID()}
	case statusNameTaken:
		err = &NameTakenError{d.Text(), d.ID()}
	case statusFull:
		full := &FullError{Memory: d.Text(), Needed: int64(d.U64()), Limit: int64(d.U64()), Used: int64(d.U64())}
		for range d.Count(12) {
			full.Holders = append(full.Holders, Holder{int(d.U32()), int64(d.U64())})
		}
		err = full
	case StatusProtocol:
		err = &ProtocolError{d.Text()}
	case statusSystem:
		err = &SystemError{d.Text()}
	case statusRefused:
		err = &RefusedError{"the store", d.Text()}
	default:
		return &ProtocolError{fmt.Sprintf("a reply's state of %d", status)}
	}
	if broken := d.Done(); broken != nil {
		return broken
	}
	return err
}
