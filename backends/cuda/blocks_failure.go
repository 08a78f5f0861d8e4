package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"hamr/backends"
)

// blockFailures are the reports of copies that may not be over yet.
type blockFailures struct {
	mu      sync.Mutex
	pending []*blockFailure
}

// blockFailure is how the host learns which index is out of range.
type blockFailure struct {
	device int
	report backends.Address // page-locked
	event  backends.Event   // the copy is over
	over   bool
	bad    *backends.BadIndex
}

func (f *blockFailures) begin(b *memoryFloor, device int) (*blockFailure, error) {
	report, err := b.takePinned(int(unsafe.Sizeof(blockReport{})))
	if err != nil {
		return nil, orAnotherWay(err)
	}
	*reportAt(report) = blockReport{failed: nothingFailed}
	event, err := b.NewEvent(device)
	if err != nil {
		return nil, errors.Join(err, b.givePinnedBack(report))
	}
	return &blockFailure{device: device, report: report, event: event}, nil
}

func reportAt(at backends.Address) *blockReport {
	return (*blockReport)(unsafe.Pointer(unsafe.SliceData(hostBytes(at, int(unsafe.Sizeof(blockReport{}))))))
}

// discard ends a report of which nobody will hear. No kernel writes to it.
func (p *blockFailure) discard(b *memoryFloor) error {
	return errors.Join(b.DestroyEvent(p.device, p.event), b.givePinnedBack(p.report))
}

func (f *blockFailures) add(b *memoryFloor, p *blockFailure) backends.BlockFailure {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, p)
	return func() *backends.BadIndex {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.end(b, p)
		return p.bad
	}
}

// end reads a report, if the copy is over. f.mu is held.
func (f *blockFailures) end(b *memoryFloor, p *blockFailure) bool {
	if p.over {
		return true
	}
	done, err := b.Done(p.device, p.event)
	//mutate:never a report is given back while a kernel may write to it
	if err != nil || !done {
		return false
	}
	p.over = true
	if r := reportAt(p.report); r.failed != nothingFailed {
		p.bad = &backends.BadIndex{To: r.failed>>32 == 0, Position: int(uint32(r.failed)), Value: r.value}
	}
	_ = p.discard(b)
	f.pending = slices.DeleteFunc(f.pending, func(q *blockFailure) bool { return p == q })
	return true
}

// collect ends the reports of copies that are over, of the oldest ones on: nobody may ever ask.
func (f *blockFailures) collect(b *memoryFloor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.pending) > 0 && f.end(b, f.pending[0]) {
	}
}

// orAnotherWay says that another way than the kernels must be taken where memory has run out.
func orAnotherWay(err error) error {
	var full *backends.OutOfMemoryError
	if isOutOfMemory(err) || errors.As(err, &full) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// Trim gives back the reports, too, of copies that are over.
func (b *copyFloor) Trim() error {
	b.failures.collect(&b.memoryFloor)
	return b.memoryFloor.Trim()
}

// Segments has no reports of copies that are over.
func (b *copyFloor) Segments() []backends.Segment {
	b.failures.collect(&b.memoryFloor)
	return b.memoryFloor.Segments()
}
