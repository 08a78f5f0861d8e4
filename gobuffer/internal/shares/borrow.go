package shares

import (
	"errors"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/gobuffer/internal/failures"
)

// Find returns a new reference to memory that this process itself has lent, and where a frame's bytes start in it;
// nil if the frame is of another process.
func (l *Ledger) Find(f *Frame) (Reference, backends.Address) { return l.leases.find(f.share) }

// Borrow maps what another process has lent, whose bytes start where the mapping does. Its maker keeps the memory until
// the mapping has ended. The descriptors stay the caller's.
func (l *Ledger) Borrow(f *Frame, b backends.Backend, device int, descriptors []int) (*Attachment, error) {
	lease, err := openLease(descriptors[len(descriptors)-1])
	if err != nil {
		return nil, err
	}
	lane := ownLanes.opens(f.note, lease)
	end := func() error {
		ownLanes.ends(f.note, lease, lane)
		return unix.Close(lease)
	}
	var made *Attachment
	if f.way == wayPool {
		made, err = l.openPooled(f, b, device, descriptors[0])
	} else {
		made, err = openAllocation(f, b, device)
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	made.Lease = lease + 1
	made.then(end)
	return made, nil
}

func openLease(descriptor int) (int, error) {
	kind, err := unix.GetsockoptInt(descriptor, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return -1, failures.Value("descriptors", descriptor, "the socket that goes with the frame")
	}
	return Duplicate(descriptor)
}

// openPooled imports an allocation of a pool.
func (l *Ledger) openPooled(f *Frame, b backends.Backend, device, descriptor int) (*Attachment, error) {
	p, err := l.enter(f.pool, b, device, descriptor)
	if err != nil {
		return nil, err
	}
	made, err := p.pool.Import(f.exported, f.Offset, f.Size)
	if err != nil {
		l.leave(p)
		return nil, err
	}
	made.then(func() error {
		l.leave(p)
		return nil
	})
	return made, nil
}

func openAllocation(f *Frame, b backends.Backend, device int) (*Attachment, error) {
	s, ok := backends.As[backends.AllocationSharer](b)
	if !ok {
		return nil, &backends.UnavailableError{Backend: b.Name(), Reason: "it opens no allocations of other processes"}
	}
	base, err := s.OpenAllocation(f.exported, device)
	if err != nil {
		return nil, err
	}
	end := func() error { return s.CloseAllocation(base) }
	found, err := locate(b, base.Address)
	if err == nil && found.Size > 0 && f.Total > found.Size-int(base.Address-found.Base) {
		err = badFrame("%d bytes of an allocation of %d", f.Total, found.Size)
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	at := base
	at.Address += backends.Address(f.Offset)
	return &Attachment{Region: at, Size: f.Size, End: end}, nil
}
