package gobuffer

import (
	"errors"
	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

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
	//mutate:never memory that is not page-locked any more is read before it was written
	if p.locked != nil {
		p.memory.uses.WriteLate() // before it is marked: see settleUnlocked
	}
	return p.memory.markOn(p.stream, w, followed)
}

// followedBy makes w's stream run after what is pending on p's memory and after p's own stream, where a foreign library
// may have work on it that we know nothing of. It returns what was pending, for mark; the caller lets it go.
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

// settle waits for what may touch p before the host does: work of ours, and foreign work on p's stream.
func (p piece) settle() error {
	if m := p.memory; m == nil || m.streams == nil && m.uses.Idle() {
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
	if pending != nil {
		//mutate:replace the host does not wait for what is pending
		//mutate:with p.memory.uses.SettleThose(pending, (*order.Work).Wait) => nil
		err := errors.Join(p.memory.uses.SettleThose(pending, (*order.Work).Wait), pending.LetGo())
		if err != nil {
			return err
		}
	}
	if !p.hasStream() {
		return nil
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
