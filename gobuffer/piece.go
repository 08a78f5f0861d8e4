package gobuffer

import (
	"errors"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// piece is an array in some memory: what contents operations read and write.
type piece struct {
	memory  *Memory
	address backends.Address
	layout  arrayiface.Layout
	stream  backends.Stream // that of the Array it belongs to
	where   int             // see Array.where
	entered bool            // see enter
	stop    *backends.Stop  // see Array.Until
}

func (p piece) onHost() bool { return p.memory == nil || p.memory.onHost }

func (p piece) pointer() unsafe.Pointer { return hostPointer(p.address) }

// hostPointer turns the address of C memory into a pointer. Go's collector does
// not move or own that memory, which is what makes the conversion sound.
func hostPointer(a backends.Address) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a))
}

func (p piece) region() backends.Region {
	r := p.memory.region
	r.Address = p.address
	return r
}

// dense reports whether the elements fill their span, whichever index runs
// fastest.
func (p piece) dense() bool { return p.layout.ContiguousC() || p.layout.ContiguousF() }

func offset(a backends.Address, by int) backends.Address { return backends.Address(int(a) + by) }

// stopWith is what ends a movement between two pieces before its time; nil: nothing does.
func (p piece) stopWith(q piece) *backends.Stop {
	if p.stop != nil {
		return p.stop
	}
	return q.stop
}

// hasStream reports whether work on p's stream may touch p.
func (p piece) hasStream() bool { return p.memory.hasStream(p.stream) }

// work stands for what is on p's stream.
func (p piece) work() (*order.Work, error) {
	w := new(order.Work) // here, so that callers that do not keep it need not allocate it
	return w, p.memory.setResolved(w, p.stream)
}

// pending returns what is recorded of p's memory, for the caller to let go.
func (p piece) pending() order.Works { return p.memory.uses.Pending(p.stream, p.where) }

// mark records that w may still touch p's memory; followed is work that w runs after.
func (p piece) mark(w *order.Work, followed order.Works) error {
	return p.memory.markOn(p.stream, w, followed)
}

// followedBy makes w's stream run after what is pending on p's memory and after
// p's own stream, where a foreign library may have work on it that we know
// nothing of. It returns what was pending, for mark; the caller lets it go.
func (p piece) followedBy(w *order.Work) (pending order.Works, err error) {
	pending = p.pending()
	for _, before := range pending {
		//mutate:skip a movement does not follow what is pending on its operands
		if err := w.Follow(before); err != nil {
			return nil, errors.Join(err, pending.LetGo())
		}
	}
	if !p.hasStream() {
		return pending, nil
	}
	own, err := p.work()
	if err == nil && !pending.Cover(own) {
		//mutate:skip a movement does not follow its operands' own streams
		err = w.Follow(own)
	}
	if err != nil {
		return nil, errors.Join(err, pending.LetGo())
	}
	return pending, nil
}

// settle waits for what may touch p before the host does: work of ours, and foreign
// work on p's stream.
func (p piece) settle() error {
	if p.memory == nil {
		return nil
	}
	pending := p.pending()
	if p.stop != nil {
		for _, w := range pending {
			if err := w.WaitUntil(p.stop); errors.Is(err, backends.ErrStopped) {
				return errors.Join(err, pending.LetGo())
			}
		}
	}
	//mutate:replace the host does not wait for what is pending
	//mutate:with p.memory.uses.SettleThose(pending, (*order.Work).Wait) => nil
	err := errors.Join(p.memory.uses.SettleThose(pending, (*order.Work).Wait), pending.LetGo())
	if err != nil || !p.hasStream() {
		return err
	}
	own, err := p.work()
	if err != nil || pending.Cover(own) {
		return err
	}
	if err := own.WaitUntil(p.stop); err != nil {
		return err
	}
	//mutate:skip the host does not wait for other libraries' work on a buffer's stream
	return own.Wait()
}

// mayShare reports whether two pieces anywhere may share bytes.
func (p piece) mayShare(q piece) bool {
	if p.origin() == q.origin() && p.memory != q.memory {
		return true // in two address spaces, which cannot be compared
	}
	if p.onHost() && q.onHost() {
		return arrayiface.Overlap(uintptr(p.address), p.layout, uintptr(q.address), q.layout)
	}
	return !p.onHost() && !q.onHost() && p.overlaps(q)
}

// span is the bytes from p's lowest to its highest.
func (p piece) span() piece {
	low, high := p.layout.Span()
	p.address = offset(p.address, low)
	p.layout = arrayiface.Layout{Type: arrayiface.Uint8, Shape: []int{high - low}, Strides: []int{1}}
	return p
}

// overlaps reports whether two pieces that the host does not reach may share
// bytes: devices number their memory each for itself. Two runtimes may know one address.
func (p piece) overlaps(q piece) bool {
	if p.memory.backend == q.memory.backend {
		if p.memory.region.Device != q.memory.region.Device {
			return false
		}
	} else if !p.memory.mayBe(q.memory) {
		return false
	}
	return arrayiface.Overlap(uintptr(p.address), p.layout, uintptr(q.address), q.layout)
}

// mayBe reports whether code of both runtimes may reach the one's memory and the other's.
func (m *Memory) mayBe(other *Memory) bool {
	reaches := func(a backends.Allocator, b backends.Backend) bool {
		s, err := backends.ParseSpace(b.Name())
		return err == nil && a.SharedWith(s)
	}
	return reaches(m.region.Allocator, other.backend) || reaches(other.region.Allocator, m.backend)
}

// origin is the memory that p's is, or is the host's view of.
func (p piece) origin() *Memory {
	if p.memory != nil && p.memory.mapping != nil {
		return p.memory.mapping.home
	}
	return p.memory
}
