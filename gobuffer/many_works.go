package gobuffer

import (
	"slices"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// sharedWork is a work that is recorded for many arrays. Where that takes an event, all have the same one.
type sharedWork struct {
	plain, event *order.Work
	asked, ends  bool
}

// mark is the piece's, of all that the work's stream holds now.
func (x *sharedWork) mark(p piece, followed order.Works) error {
	if !x.asked {
		x.asked, x.ends = true, x.plain.MayHaveEnded()
	}
	w := x.plain
	if x.ends && (p.stream != w.Stream || p.memory.outlives(w)) {
		if x.event == nil {
			x.event = w.ByEvent()
		}
		w = x.event
	}
	if w.Ticket != nil {
		w.Ticket.Retain()
	}
	return p.mark(w, followed)
}

func (x *sharedWork) letGo() error {
	if x.event == nil || x.event == x.plain {
		return nil
	}
	return order.Works{x.event}.LetGo()
}

// pendingRoom is where the lists of what is pending on many arrays lie one after the other.
type pendingRoom struct{ all order.Works }

func (r *pendingRoom) pending(p *piece) order.Works {
	before := len(r.all)
	r.all = p.memory.uses.AppendPending(r.all, p.stream, p.where)
	return r.all[before:len(r.all):len(r.all)]
}

// followed is what a stream was made to run after, for many arrays.
type followed struct {
	works   order.Works               // all that their streams hold
	tickets map[order.Ticket]struct{} // made where there is one
	own     []ownStream               // of the arrays
}

type ownStream struct {
	backend backends.Backend
	device  int // of the memory: page-locked memory has none, and its stream says
	stream  backends.Stream
}

func (p *piece) ownStream() ownStream {
	return ownStream{p.memory.backend, p.memory.region.Device, p.stream}
}

// follow makes w's stream run after works that were recorded for p, and after p's own stream. It skips what w follows
// already.
func (f *followed) follow(w *order.Work, p piece, pending order.Works) error {
	//mutate:replace many copies do not wait for what was recorded
	//mutate:with range pending => range pending[:0]
	for _, before := range pending {
		if err := f.followWork(w, before); err != nil {
			return err
		}
	}
	if !p.hasStream() {
		return nil
	}
	own := p.ownStream()
	//mutate:replace many copies wait for the streams of some of their arrays
	//mutate:with slices.Contains(f.own, own) => slices.Contains(f.own, own) || len(f.own) > 0
	if slices.Contains(f.own, own) {
		return nil
	}
	before, err := p.work()
	if err != nil {
		return err
	}
	f.own = append(f.own, own)
	//mutate:skip many copies do not wait for their arrays' own streams
	return f.followWork(w, before)
}

func (f *followed) followWork(w, before *order.Work) error {
	if before.Ticket == nil {
		if f.works.Cover(before) {
			return nil
		}
		f.works = append(f.works, before)
		return w.Follow(before)
	}
	if _, is := f.tickets[before.Ticket]; is {
		return nil
	}
	if f.tickets == nil {
		f.tickets = map[order.Ticket]struct{}{}
	}
	f.tickets[before.Ticket] = struct{}{}
	return w.Follow(before)
}
