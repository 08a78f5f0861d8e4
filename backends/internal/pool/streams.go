package pool

import (
	"maps"
	"slices"
	"sync/atomic"

	"hamr/backends"
)

// stream owns free blocks that its earlier work may still use. A lasting stream is queried when somebody needs to
// know. Another stream's handle may be a new stream's by then, so each of its blocks has an event.
type stream struct {
	handle  backends.Stream
	lasting bool
	special bool        // anybody's, or lost
	ended   atomic.Bool // nobody can work on it any more
	free    [kindCount]freeList

	now    uint64         // counts the moments at which blocks came back
	event  backends.Event // of a lasting stream, or zero
	covers uint64         // the last moment that the event covers
}

func (s *stream) blocks() int { return len(s.free[small]) + len(s.free[large]) }

// apart reports whether the stream's blocks have an event each.
func (s *stream) apart() bool { return !s.lasting && !s.special }

// lastingStream returns the stream of a handle where it can be asked at any time; else nil.
func (p *Pool) lastingStream(s backends.Stream) *stream {
	if found := (*p.lasting.Load())[s]; found != nil || s == backends.EveryStream {
		return found
	}
	if !p.source.Lasting(s) {
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.lastingLocked(s)
}

func (p *Pool) lastingLocked(s backends.Stream) *stream {
	known := *p.lasting.Load()
	if found := known[s]; found != nil {
		return found
	}
	p.disown(s)
	changed := maps.Clone(known)
	made := &stream{handle: s, lasting: true}
	changed[s] = made
	p.streams[s] = made
	p.lasting.Store(&changed)
	return made
}

// disown keeps what an earlier stream of the same handle owns from the next one.
func (p *Pool) disown(s backends.Stream) {
	before := p.streams[s]
	if before == nil {
		return
	}
	before.ended.Store(true)
	delete(p.streams, s)
	p.ended = append(p.ended, before)
	p.forgetIdle(before)
}

// owned makes a stream the owner of a block that comes back. The stream's present work may still use the block.
func (p *Pool) owned(b *block, s backends.Stream) {
	owner := p.streams[s]
	switch {
	case s == backends.EveryStream:
		owner = &p.lost
	case owner == nil && p.source.Lasting(s):
		owner = p.lastingLocked(s)
	case owner == nil:
		owner = &stream{handle: s}
		p.streams[s] = owner
	}
	if owner.apart() {
		e, err := p.source.Record(s)
		b.event = e
		if err != nil {
			p.forgetIdle(owner)
			owner = &p.lost
		}
	}
	b.owner = owner
}

// poll asks the streams that own blocks how far they are.
func (p *Pool) poll() {
	for _, s := range p.streams {
		p.pollStream(s)
	}
	for _, s := range append([]*stream(nil), p.ended...) {
		p.pollStream(s)
	}
}

func (p *Pool) pollStream(s *stream) {
	defer p.forgetIdle(s)
	if s.apart() {
		p.settle(s, func(b *block) bool { return p.over(b.event) })
		return
	}
	if s.event != 0 {
		if !p.over(s.event) {
			return
		}
		p.forgetEvent(s)
		p.settleUpTo(s, s.covers)
	}
	if s.ended.Load() || s.blocks() == 0 {
		return
	}
	idle, err := p.source.Idle(s.handle)
	switch {
	case err != nil:
	//mutate:always a pool does not look whether a stream is idle
	case idle:
		p.settleUpTo(s, s.now)
	default:
		// Blocks that come back later do not make others wait for them.
		p.mark(s)
	}
}

func (p *Pool) over(e backends.Event) bool {
	done, err := p.source.Done(e)
	//mutate:replace a pool does not look whether an event was reached
	//mutate:with err == nil && done => err == nil || done
	return err == nil && done
}

// mark keeps an event of what a stream holds now.
func (p *Pool) mark(s *stream) bool {
	e, err := p.source.Record(s.handle)
	if err != nil {
		return false
	}
	s.event, s.covers = e, s.now
	return true
}

func (p *Pool) settleUpTo(s *stream, moment uint64) {
	//mutate:replace an event speaks for what comes back later
	//mutate:with b.moment <= moment => true
	p.settle(s, func(b *block) bool { return b.moment <= moment })
}

// settle lets anybody have those blocks of a stream that nothing uses any more.
func (p *Pool) settle(s *stream, over func(*block) bool) {
	for k := range s.free {
		for _, b := range append(freeList(nil), s.free[k]...) {
			if !over(b) {
				continue
			}
			b.list().remove(b)
			p.forgetEventOf(b)
			b.owner = &p.anybody
			p.joinAnybody(b)
		}
	}
}

// forgetIdle forgets the event of a stream that owns nothing, and the stream unless somebody
// may give more back to it.
func (p *Pool) forgetIdle(s *stream) {
	if s.blocks() > 0 || s.special {
		return
	}
	p.forgetEvent(s)
	if s.lasting && !s.ended.Load() {
		return
	}
	if p.streams[s.handle] == s {
		delete(p.streams, s.handle)
	}
	if i := slices.Index(p.ended, s); i >= 0 {
		p.ended = slices.Delete(p.ended, i, i+1)
	}
}

func (p *Pool) forgetEvent(s *stream) {
	if s.event != 0 {
		p.source.Destroy(s.event)
		s.event = 0
	}
}

func (p *Pool) forgetEventOf(b *block) {
	if b.event != 0 {
		p.source.Destroy(b.event)
		b.event = 0
	}
}

// EndStream keeps the Pool from using a lasting stream that is about to end. Nobody may give memory back to it
// afterwards.
func (p *Pool) EndStream(s backends.Stream) {
	if (*p.lasting.Load())[s] == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.flush()
	known := *p.lasting.Load()
	owner := known[s]
	if owner == nil {
		return
	}
	changed := maps.Clone(known)
	delete(changed, s)
	p.lasting.Store(&changed)
	if owner.blocks() > 0 {
		//mutate:replace a pool forgets what a stream held at its end
		//mutate:with p.leave(owner) => p.settleUpTo(owner, owner.now)
		p.leave(owner)
	}
	p.disown(s)
}

// leave records an event for all work that a stream holds. If that fails, its blocks wait for the device.
func (p *Pool) leave(owner *stream) {
	p.forgetEvent(owner)
	if p.mark(owner) {
		return
	}
	for k := range owner.free {
		list := owner.free[k]
		owner.free[k] = nil
		for _, b := range list {
			b.owner, b.moment = &p.lost, p.lost.next()
			p.join(b)
		}
	}
}

// next is the moment at which a block comes back.
func (s *stream) next() uint64 {
	s.now++
	return s.now
}
