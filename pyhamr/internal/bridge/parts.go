package bridge

import (
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer"
)

// ThreadUse sets the number of the partsUse that the calling thread is in, and returns the one before; a number below
// zero sets nothing. Package capi sets it.
var ThreadUse = func(use int64) (before int64) { return 0 }

var (
	parts     = newNumbered[*gobuffer.Parts](storeClosed)
	partsUses = newNumbered[*partsUse](storeClosed)
)

// partsUse is a region of a thread's code in which a library takes parts, or none of any where there are no parts.
type partsUse struct {
	parts  *gobuffer.Parts
	before int64       // the thread's use before it
	ended  atomic.Bool // by another thread, or before a later one of its thread: it counts no more
}

// lentParts are those of which a library has some, to be found by address.
var lentParts struct {
	count atomic.Int64
	mutex sync.Mutex
	list  []*gobuffer.Parts
}

// lend lists parts of which a library has some, or no longer has any. The mutex is held.
func lend(p *gobuffer.Parts, lent bool) {
	l := &lentParts
	switch i := slices.Index(l.list, p); {
	case lent && i < 0:
		l.list = append(l.list, p)
	case !lent && i >= 0:
		l.list = slices.Delete(l.list, i, i+1)
	}
	l.count.Store(int64(len(l.list)))
}

// OpenParts has the first size bytes of an object handed out in parts, while it is not sealed. The token is the
// builder's.
func OpenParts(token uint64, size int) (number uint64, err error) {
	defer Guard(&err)
	o, err := storeObjects.get(token)
	if err != nil {
		return 0, err
	}
	p, err := gobuffer.NewParts(o.builder.Load().Array(), size)
	if err != nil {
		return 0, err
	}
	return parts.keep(p), nil
}

// TakePart returns the address of a part.
func TakePart(number uint64, size int) (at backends.Address, err error) {
	defer Guard(&err)
	p, err := parts.get(number)
	if err != nil {
		return 0, err
	}
	return p.Take(size, false)
}

// GivePart takes it back. Where the parts were closed nobody needs to know.
func GivePart(number uint64, at backends.Address) {
	if p, err := parts.get(number); err == nil {
		p.Give(at, false)
	}
}

// FreeParts returns how many bytes are free, or with largest how many of them in one piece.
func FreeParts(number uint64, largest bool) (bytes int, err error) {
	defer Guard(&err)
	p, err := parts.get(number)
	free, piece := p.Free()
	if largest {
		return piece, err
	}
	return free, err
}

// CloseParts ends what hands out parts, and returns how many libraries have.
func CloseParts(number uint64) (held int) {
	p, err := parts.take(number)
	if err != nil {
		return 0
	}
	return p.Close()
}

// EnterParts has libraries take parts on the calling thread until LeaveParts; of the number 0, memory as otherwise.
func EnterParts(number uint64) (use uint64, err error) {
	defer Guard(&err)
	made := &partsUse{before: leaveEnded(ThreadUse(-1))}
	if number != 0 {
		if made.parts, err = parts.get(number); err != nil {
			return 0, err
		}
	}
	use = partsUses.keep(made)
	ThreadUse(int64(use))
	return use, nil
}

// LeaveParts ends that, from any thread and in any order.
func LeaveParts(use uint64) {
	if was, err := partsUses.get(use); err == nil {
		was.ended.Store(true)
		leaveEnded(ThreadUse(-1))
	}
}

// leaveEnded sets the number of the innermost use of the calling thread that has not ended, and returns it.
func leaveEnded(use int64) int64 {
	for use != 0 {
		in, err := partsUses.get(uint64(use))
		if err != nil || !in.ended.Load() {
			break
		}
		_, _ = partsUses.take(uint64(use)) // no other thread has it
		use = in.before
		ThreadUse(use)
	}
	return use
}

// PartFor returns a part for a library that asks on a thread which is in a use. is tells whether the use is of parts on
// the device: else the library gets memory as otherwise.
func PartFor(use uint64, device, size int) (at backends.Address, is bool, err error) {
	defer Guard(&err)
	in, err := partsUses.get(uint64(leaveEnded(int64(use))))
	if err != nil || in.parts == nil || in.parts.Region().Device != device || size <= 0 {
		return 0, false, nil
	}
	if at, err = in.parts.Take(size, true); err == nil { // which may wait
		lentParts.mutex.Lock()
		defer lentParts.mutex.Unlock()
		lend(in.parts, true)
	}
	return at, true, err
}

// partFreed reports whether a library has given back a part.
func partFreed(at backends.Address) bool {
	l := &lentParts
	if l.count.Load() == 0 {
		return false
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	i := slices.IndexFunc(l.list, func(p *gobuffer.Parts) bool { return p.Give(at, true) })
	if i >= 0 && l.list[i].Lent() == 0 {
		lend(l.list[i], false)
	}
	return i >= 0
}
