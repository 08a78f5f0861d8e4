package pool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"hamr/backends"
)

// LimitError is the error for memory that the limit does not allow.
type LimitError struct {
	Limit, Reserved, Size int // bytes: the most, what the driver has given, what is asked for
}

// Error says what the limit is.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the limit is %d bytes, of which %d are taken: %d more are not allowed", e.Limit, e.Reserved,
		e.Size)
}

// NoLimit is the limit of a Pool that takes as much as there is.
const NoLimit = backends.NoLimit

// SetLimit sets how many bytes are taken from the driver at most. Memory that is there already
// stays until Trim.
func (p *Pool) SetLimit(bytes int) { p.limit.Store(int64(bytes)) }

// SetBeside makes the bytes that beside returns count against the limit, too. beside gets the number of bytes that
// the Pool is about to have, and may make room for them. SetBeside is called before the Pool is used.
func (p *Pool) SetBeside(beside func(ours int) int) { p.beside = beside }

// Limit returns what SetLimit has set.
func (p *Pool) Limit() int { return int(p.limit.Load()) }

func (p *Pool) full(err error) bool {
	var limited *LimitError
	return errors.As(err, &limited) || p.source.Full(err)
}

// surplus is how many bytes nobody uses and the pool does not keep, either.
func (p *Pool) surplus() int { return p.reserved - p.lent - p.keep }

// Trim waits for all work on the device and gives back to the driver what nobody uses.
func (p *Pool) Trim() error {
	p.trimming.Lock()
	defer p.trimming.Unlock()
	p.mutex.Lock()
	p.flush()
	empty := len(p.segments) == 0
	// The wait does not cover blocks that come back meanwhile.
	moments := map[*stream]uint64{&p.lost: p.lost.now}
	for _, s := range p.streams {
		if s.lasting {
			moments[s] = s.now
		}
	}
	p.mutex.Unlock()
	if empty {
		return nil
	}
	//mutate:skip a pool is trimmed without waiting for the device
	if err := p.source.Synchronize(); err != nil {
		return err
	}
	p.mutex.Lock()
	for s, moment := range moments {
		p.settleUpTo(s, moment)
	}
	p.poll()
	unused := p.unused(true)
	p.mutex.Unlock()
	_, err := p.free(unused)
	return err
}

// release gives segments that nobody uses to the driver: all, or those that were not used for
// longest, until no more are kept than may be. It returns how many bytes.
func (p *Pool) release(all bool) (bytes int, err error) {
	// So a thread that runs out of memory finds what others are giving back at that moment.
	p.trimming.Lock()
	defer p.trimming.Unlock()
	p.mutex.Lock()
	if all {
		p.flush()
		p.poll()
	}
	unused := p.unused(all)
	p.mutex.Unlock()
	return p.free(unused)
}

// unused takes the segments out of the pool that release gives back.
func (p *Pool) unused(all bool) (list []*segment) {
	for _, g := range p.segments {
		if g.lent == 0 && g.releasable(&p.anybody) {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(g, h *segment) int { return cmp.Compare(g.used, h.used) })
	for i, g := range list {
		if !all && p.surplus() <= 0 {
			return list[:i]
		}
		p.drop(g)
	}
	return list
}

// releasable reports whether the driver's wait for the device covers all work that may still use the segment. It
// covers lasting streams, which are the device's own.
func (g *segment) releasable(anybody *stream) bool {
	for b := g.first; b != nil; b = b.next {
		//mutate:never a pool gives memory to the driver that another context still uses
		if b.owner != anybody && !b.owner.lasting {
			return false
		}
	}
	return true
}

// free gives segments that the pool has dropped back to the driver. Those that the driver does not take are kept
// until the device was waited for. It is no failure that somebody pauses or resumes them now.
func (p *Pool) free(list []*segment) (bytes int, failed error) {
	for _, g := range list {
		err := p.source.Free(g.at)
		if err == nil {
			bytes += g.size
			continue
		}
		var busy *backends.PausedError
		if !errors.As(err, &busy) {
			failed = errors.Join(failed, err)
		}
		p.mutex.Lock()
		b := p.add(g.at, g.size, g.kind)
		b.list().remove(b)
		//mutate:replace memory that the driver did not take back is reused at once
		//mutate:with b.owner, b.moment = &p.lost, p.lost.next() => b.owner = &p.anybody
		b.owner, b.moment = &p.lost, p.lost.next()
		b.list().insert(b)
		p.mutex.Unlock()
	}
	return bytes, failed
}

// Statistics is what a Pool holds, in bytes, and how often it had what was asked for.
type Statistics struct {
	Reserved     int // from the driver
	MostReserved int // ever
	Lent         int // to those who use it
	Cached       int // that nobody uses
	LargestFree  int // in one block
	Hits, Misses int64
}

// Statistics returns the figures of one instant.
func (p *Pool) Statistics() Statistics {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	s := Statistics{Reserved: p.reserved, MostReserved: p.counts.mostReserved, Lent: p.lent,
		Hits: p.counts.hits, Misses: p.counts.misses}
	for i := range p.parts {
		t := &p.parts[i]
		t.mutex.Lock()
		s.Hits += t.hits
		s.Lent -= t.bytes
		for _, b := range t.blocks[:t.count] {
			s.LargestFree = max(s.LargestFree, b.size)
		}
		t.mutex.Unlock()
	}
	for _, g := range p.segments {
		for b := g.first; b != nil; b = b.next {
			if b.state.Load() == stateFree {
				s.LargestFree = max(s.LargestFree, b.size)
			}
		}
	}
	s.Cached = s.Reserved - s.Lent
	return s
}
