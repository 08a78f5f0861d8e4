package shares

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
)

// opening is a Fake whose allocations others open: in this process, at an address where nothing is.
type opening struct {
	*backendtest.Fake
	opened atomic.Int64
}

func newOpening() *opening {
	return &opening{Fake: backendtest.NewFake(backendtest.FakeOptions{Identities: []backends.UUID{{7}}})}
}

func (o *opening) ExportAllocation(backends.Region) ([]byte, int, error) {
	return []byte("allocation"), 64, nil
}

func (o *opening) OpenAllocation(exported []byte, device int) (backends.Region, error) {
	if string(exported) != "allocation" {
		return backends.Region{}, errors.New("another handle")
	}
	o.opened.Add(1)
	return backends.Region{Address: 1 << 40, Allocator: backends.CUDA, Device: device}, nil
}

func (o *opening) CloseAllocation(backends.Region) error {
	o.opened.Add(-1)
	return nil
}

// party is another process to other parties, of this process or another one.
type party struct {
	ledger  Ledger
	backend *opening
	live    atomic.Int64 // blocks
}

// sharers are two parties with one backend.
func sharers(t *testing.T) (b *opening, here, there *party) {
	b = newOpening()
	t.Cleanup(func() { assert.Zero(t, b.opened.Load()) })
	return b, &party{backend: b}, &party{backend: b}
}

// block is memory that references keep.
type block struct {
	of    *party
	count atomic.Int64
}

func (b *block) Again() Reference {
	b.count.Add(1)
	return b
}

func (b *block) Release() error {
	if b.count.Add(-1) == 0 {
		b.of.live.Add(-1)
	}
	return nil
}

// sent is what goes to another party.
type sent struct {
	frame       []byte
	mu          sync.Mutex
	descriptors []int
}

func (s *sent) Frame() []byte      { return s.frame }
func (s *sent) Descriptors() []int { return s.descriptors }

func (s *sent) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.descriptors
	s.descriptors = nil
	return Close(list)
}

// lends shares new memory that nothing else keeps.
func (p *party) lends() (*sent, error) {
	layout, err := arrayiface.NewLayout(arrayiface.Int32, []int{100}, nil)
	if err != nil {
		return nil, err
	}
	f := &Frame{Layout: layout, Size: layout.NBytes()}
	memory := &block{of: p}
	p.live.Add(1)
	source := memory.Again()
	at := backends.Region{Address: 4096, Allocator: backends.CUDA}
	list, err := p.ledger.Lend(f, Source{Reference: source, Backend: p.backend, Region: at, Owned: true}, at.Address)
	if err = errors.Join(err, source.Release()); err != nil {
		return nil, err
	}
	return &sent{frame: f.Encode(), descriptors: list}, nil
}

func (p *party) opens(frame []byte, descriptors []int) (*Attachment, error) {
	f, err := Decode(frame, len(descriptors))
	if err != nil {
		return nil, err
	}
	device, err := p.ledger.Device(f, p.backend)
	if err != nil {
		return nil, err
	}
	return p.ledger.Borrow(f, p.backend, device, descriptors)
}

func lendsNew(t *testing.T, p *party) *sent {
	t.Helper()
	shared, err := p.lends()
	require.NoError(t, err)
	return shared
}

// lendsOnce shares memory, which the other party opens and closes.
func lendsOnce(t *testing.T, here, there *party) {
	t.Helper()
	shared := lendsNew(t, here)
	theirs, err := there.opens(shared.Frame(), shared.Descriptors())
	require.NoError(t, err)
	require.NoError(t, errors.Join(theirs.End(), shared.Close()))
	ends(t, here)
}

// ends waits until what was lent is given back.
func ends(t *testing.T, p *party) {
	t.Helper()
	require.Eventually(t, func() bool { return p.live.Load() == 0 }, time.Minute, time.Millisecond)
}

func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// fillSlots has a party's next shares lie in no lane, until one that has a slot ends.
func fillSlots(p *party) {
	l := &p.ledger.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots.used, l.slots.free = laneWords-1, nil
}

// notedShares is how many shares this process's lanes say to be open.
func notedShares() (count int) {
	ownLanes.mu.Lock()
	defer ownLanes.mu.Unlock()
	for _, each := range ownLanes.to {
		count += len(each.open)
	}
	return count
}

// lanesMade is how many lanes this process has.
func lanesMade() int {
	ownLanes.mu.Lock()
	defer ownLanes.mu.Unlock()
	return len(ownLanes.to)
}

// dropLanes gives up the lanes that say nothing.
func dropLanes() {
	ownLanes.mu.Lock()
	defer ownLanes.mu.Unlock()
	for ownLanes.dropOldest() {
	}
}
