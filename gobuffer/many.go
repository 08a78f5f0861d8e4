package gobuffer

import (
	"errors"
	"fmt"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// CopyMany writes each source to the destination at the same place in the list, as Write does one after the other. If a
// later destination shares bytes with an earlier destination or source, its copy comes after that one. Copies that a
// backend can make in few steps are made so, and waits happen once, at the end. All pairs are checked before anything
// is copied, and an error names the place in the list. After a device's error, the elements of all destinations are
// unspecified.
func CopyMany(destinations, sources []*Array) (err error) {
	if len(destinations) != len(sources) {
		return valueError("sources", fmt.Sprintf("%d arrays", len(sources)),
			fmt.Sprintf("one for each of %d destinations", len(destinations)))
	}
	pairs := pairLists.take(len(destinations))
	defer pairLists.give(pairs)
	list := *pairs
	for i, d := range destinations {
		from, err := d.broadcast(sources[i])
		if err != nil {
			return fmt.Errorf("destinations[%d], sources[%d]: %w", i, i, err)
		}
		list[i] = pair{d.runtime, d.all(), from, d.options.Transfer}
	}
	if err := noPaused(list); err != nil {
		return err
	}
	if independent(list) {
		lockPairs(list)
		err = copyApart(list)
	} else {
		// What is read by another Memory must be there: all of the host's memory counts as ordinary.
		//mutate:insert copies read on the host what a device has yet to write, by another Memory
		//mutate:with lockPairs(list)
		err = copyInOrder(list)
	}
	//mutate:replace many copies to the host are not waited for
	//mutate:with finishPairs(list) => nil
	return errors.Join(err, finishPairs(list))
}

var (
	pairLists  scratch[pair]
	copyLists  scratch[backends.BatchCopy]
	worksLists scratch[order.Works]
)

// pair is elements and those that they are to become, of one shape.
type pair struct {
	runtime  *Runtime
	dst, src piece
	transfer Transfer
}

// noPaused refuses pairs of which any memory is paused, before any is copied.
func noPaused(list []pair) error {
	for i := range list {
		if err := errors.Join(list[i].dst.memory.notPaused(), list[i].src.memory.notPaused()); err != nil {
			return fmt.Errorf("destinations[%d], sources[%d]: %w", i, i, err)
		}
	}
	return nil
}

// lockPairs finds out which ends of pairs are page-locked.
func lockPairs(list []pair) {
	var known lockedRange
	for i := range list {
		p := &list[i]
		if p.dst.memory == nil || p.src.memory == nil || p.dst.layout.Count() == 0 {
			continue
		}
		p.dst.lockFor(&p.src, &known)
		p.src.lockFor(&p.dst, &known)
	}
}

// copyInOrder copies pairs that may depend on one another. It does not wait where finishPairs can wait later.
func copyInOrder(list []pair) error {
	switch {
	case len(list) == 0:
		return nil
	case len(list) == 1:
		return list[0].copy()
	case independent(list):
		return copyApart(list)
	}
	half := len(list) / 2
	// What is read next may be ordinary host memory, whose readers ask nobody.
	//mutate:replace a copy of many reads host memory that an earlier one has yet to write
	//mutate:with finishPairs(list[:half]) => nil
	if err := errors.Join(copyInOrder(list[:half]), finishPairs(list[:half])); err != nil {
		return err
	}
	if err := tellOthers(list[:half], list[half:]); err != nil {
		return err
	}
	return copyInOrder(list[half:])
}

func (p *pair) copy() error {
	if p.plain() {
		defer p.runtime.kept.changed(p.dst)
		return p.runtime.copyBytes(p.dst, p.src, deferred)
	}
	return p.runtime.copyElements(p.dst, p.src, Async)
}

// plain reports whether the pair is a copy of bytes by the runtime of a device.
func (p *pair) plain() bool {
	dst, src := &p.dst, &p.src
	return dst.layout.Count() > 0 && !dst.maps() && !src.maps() && !(dst.onHost() && src.onHost()) &&
		p.alike() && !dst.overlaps(*src) &&
		(dst.memory.backend == src.memory.backend || dst.memory.kind == backends.Pageable ||
			src.memory.kind == backends.Pageable)
}

// alike reports whether the elements of both lie in the same order without gaps. Strides of dimensions of one index do
// not matter.
func (p *pair) alike() bool {
	to, from := &p.dst.layout, &p.src.layout
	return to.Type == from.Type && (to.ContiguousC() && from.ContiguousC() || to.Equal(*from) && p.dst.dense())
}

// side is the piece by whose runtime a plain pair is copied, on whose stream.
func (p *pair) side() piece {
	if p.dst.onHost() {
		return p.src
	}
	return p.dst
}

// lot is what copies of one batch have in common.
type lot struct {
	runtime        *Runtime
	backend        backends.Backend
	stream         backends.Stream
	to, from       backends.MemoryKind
	target, source int // devices
}

func (p *pair) lot() lot {
	side := p.side()
	return lot{p.runtime, side.memory.backend, side.stream, p.dst.kind(), p.src.kind(),
		p.dst.memory.region.Device, p.src.memory.region.Device}
}

// copyApart copies pairs that do not depend on one another.
func copyApart(list []pair) error {
	var lots grouped[lot, []*pair]
	for i := range list {
		p := &list[i]
		if !p.plain() || p.side().memory.batcher == nil {
			if err := p.copy(); err != nil {
				return err
			}
			continue
		}
		together := lots.at(p.lot())
		*together = append(*together, p)
	}
	for _, key := range lots.order {
		together := *lots.at(key)
		copyThem := func() error { return key.runtime.copyLot(together) }
		if len(together) == 1 {
			copyThem = together[0].copy
		}
		if err := copyThem(); err != nil {
			return err
		}
	}
	return nil
}

// copyLot is piece.enqueue for pairs of one lot. Nothing is waited for.
func (r *Runtime) copyLot(list []*pair) (err error) {
	side := list[0].side()
	if r.tracing() {
		r.tracef("copy %d arrays %s device %d to %s device %d together", len(list), list[0].src.region().Allocator,
			list[0].src.memory.region.Device, list[0].dst.region().Allocator, list[0].dst.memory.region.Device)
	}
	return enqueueTogether(side, list, nil, func(w *order.Work) (*order.Work, backends.Progress, error) {
		copies := copyLists.take(len(list))
		defer copyLists.give(copies)
		for i, p := range list {
			(*copies)[i] = backends.BatchCopy{Dst: p.dst.region(), Src: p.src.region(), Size: p.dst.layout.NBytes(),
				Stop: p.dst.stopWith(p.src)}
		}
		left, err := side.memory.batcher.CopyBatch(*copies, w.Stream)
		return w, left, err
	})
}

// enqueueTogether is piece.enqueue for pairs of one lot, and more that is read with them. move returns, too, what is
// recorded for the targets. Nothing is waited for. After errors.ErrUnsupported another way is taken for all.
func enqueueTogether(
	side piece, list []*pair, more []piece, move func(*order.Work) (*order.Work, backends.Progress, error),
) (err error) {
	w, err := side.work()
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := p.src.settleUnlocked(w); err != nil {
			return err
		}
		if p.hostEnd() != &p.src || p.src.kind() == backends.Pageable {
			continue
		}
		//mutate:skip a runtime reads another one's host memory before what is pending there
		if err := p.src.settle(); err != nil {
			return err
		}
	}
	works := worksLists.take(2*len(list) + len(more))
	defer worksLists.give(works)
	before := *works
	var room pendingRoom
	for i, p := range list {
		before[2*i], before[2*i+1] = room.pending(&p.src), room.pending(&p.dst)
	}
	also := before[2*len(list):]
	for i := range more {
		also[i] = room.pending(&more[i])
	}
	defer func() {
		for i, p := range list {
			side.memory.runtime.kept.changed(p.dst)
			err = errors.Join(err, before[2*i].LetGo(), before[2*i+1].LetGo())
		}
		for i := range also {
			err = errors.Join(err, also[i].LetGo())
		}
	}()
	// Only what was recorded before the first event is known to be covered by it.
	var already followed
	for i, p := range list {
		//mutate:skip many copies do not wait for work on their sources
		err := already.follow(w, p.src, before[2*i])
		if err == nil {
			//mutate:skip many copies do not wait for work on their destinations
			err = already.follow(w, p.dst, before[2*i+1])
		}
		if err != nil {
			return err
		}
	}
	for i, p := range more {
		//mutate:skip blocks are copied before their indices are there
		if err := already.follow(w, p, also[i]); err != nil {
			return err
		}
	}
	if list[0].dst.kind() == backends.Pageable {
		if err := w.WaitUntil(list[0].dst.stopWith(list[0].src)); err != nil {
			return err
		}
	}
	written, left, err := move(w)
	//mutate:replace nobody waits for blocks that were begun before another way is taken
	//mutate:with left == backends.Complete => true
	if side.memory.streams == nil || errors.Is(err, errors.ErrUnsupported) && left == backends.Complete {
		return err
	}
	if err != nil {
		//mutate:replace nobody waits for what many copies have begun before an error
		//mutate:with left = backends.Reading | backends.Writing => return err
		left = backends.Reading | backends.Writing // some may have been begun
	}
	stopped := errors.Is(err, backends.ErrStopped) // then nobody uses ordinary host memory any more
	reads, writes := &sharedWork{plain: w}, &sharedWork{plain: written}
	for i, p := range list {
		if left == backends.Complete {
			err = errors.Join(err, p.src.memory.uses.Done(before[2*i]), p.dst.memory.uses.Done(before[2*i+1]))
			continue
		}
		if left&backends.Reading != 0 && !(stopped && p.src.kind() == backends.Pageable) {
			//mutate:remove nobody waits for the readers of many copies' sources
			err = errors.Join(err, reads.mark(p.src, before[2*i]))
		}
		if !stopped || p.dst.kind() != backends.Pageable {
			//mutate:remove nobody waits for the writers of many copies' destinations
			err = errors.Join(err, writes.mark(p.dst, before[2*i+1]))
		}
	}
	for i, p := range more {
		if left&backends.Reading != 0 {
			//mutate:remove nobody waits for the readers of the indices of blocks
			err = errors.Join(err, reads.mark(p, also[i]))
		}
	}
	return errors.Join(err, reads.letGo(), writes.letGo(), order.Works{written}.LetGo())
}

// finishPairs waits for what the transfer modes of its pairs ask for, once for each stream.
func finishPairs(list []pair) (err error) {
	type wait struct {
		*pair
		read, written order.Works
	}
	var waits []wait
	var room pendingRoom
	for i := range list {
		if p := &list[i]; p.waits() {
			// All is recorded before the first wait: what comes later, that does not cover.
			waits = append(waits, wait{p, room.pending(&p.src), room.pending(&p.dst)})
		}
	}
	var over order.Works
	for _, each := range waits {
		for _, w := range each.written {
			//mutate:replace many copies wait for one stream alone
			//mutate:with over.Contain(w) => len(over) > 0
			if over.Contain(w) {
				continue
			}
			var failed error
			//mutate:always many copies are written to ordinary memory after a stop
			if each.dst.kind() != backends.Pageable { // else the runtime writes to what the caller may free
				failed = w.WaitUntil(each.dst.stopWith(each.src))
			}
			if failed == nil {
				failed = w.Wait()
			}
			if failed != nil {
				err = errors.Join(err, failed)
			} else {
				over = append(over, w)
			}
		}
	}
	for _, each := range waits {
		err = errors.Join(err, each.src.memory.uses.Done(over.Among(each.read)),
			each.dst.memory.uses.Done(over.Among(each.written)),
			each.read.LetGo(), each.written.LetGo())
	}
	return err
}

// waits reports whether the pair is to be complete when CopyMany returns.
func (p *pair) waits() bool {
	m := p.dst.memory
	if m == nil || m.uses.Idle() || p.dst.layout.Count() == 0 {
		return false
	}
	// Ordinary host memory is read without asking anybody, in every mode.
	return p.transfer == Sync || p.dst.kind() == backends.Pageable || p.transfer == SyncHost && p.dst.onHost()
}
