package server

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/backends/host"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// spares is the host's memory that is kept ready for large objects: one file whose pages are there,
// huge ones where the machine has them. What was an object's never becomes ready again. The server's
// lock guards it.
type spares struct {
	want   int64  // bytes that are to be ready, 0 for none
	ready  *spare // nil where none is
	making *spare
	hits   int64
	misses int64         // objects that it would have been for, and was not there
	wake   chan struct{} // has one entry where something may have to be made
	done   chan struct{} // closed when nothing is made any more
}

type spare struct {
	size       int64
	descriptor int
	givenUp    atomic.Bool // while it was made
}

// fits reports whether it is for an object of some bytes: for less than half of it nothing is cut off
// and thrown away.
func (p *spares) fits(bytes int64) bool { return p.want > 0 && bytes >= p.want/2 }

// bytes is how many of those that are counted as used could be given up.
func (p *spares) bytes() (n int64) {
	for _, one := range []*spare{p.ready, p.making} {
		if one != nil {
			n += one.size
		}
	}
	return n
}

func (s *Server) startSpares(bytes int64) {
	if bytes == 0 {
		return
	}
	p := &s.spares
	p.want, p.wake, p.done = protocol.RoundUp(bytes, protocol.PageSize), make(chan struct{}, 1), make(chan struct{})
	p.wake <- struct{}{}
	go func() {
		defer close(p.done)
		for range p.wake {
			s.makeSpare()
		}
	}()
}

// endSpares has nothing made any more, and gives up what there is. The lock is not held.
func (s *Server) endSpares() {
	p := &s.spares
	if p.want == 0 {
		return
	}
	s.Mu.Lock()
	p.want = 0
	s.giveUpSpare()
	close(p.wake)
	s.Mu.Unlock()
	<-p.done
}

// wantSpare is told when memory may be made ready: an object was sealed, or memory has gone.
func (s *Server) wantSpare() {
	if p := &s.spares; p.want > 0 && p.ready == nil && p.making == nil {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// makeSpare makes memory ready if there is room which nobody needs. Where that fails there is none
// until something else changes.
func (s *Server) makeSpare() {
	p := &s.spares
	s.Mu.Lock()
	d := s.DomainOf(backends.UUID{})
	if p.want == 0 || p.ready != nil || p.want > d.limit-d.used {
		s.Mu.Unlock()
		return
	}
	one := &spare{size: p.want}
	p.making = one
	d.count(one.size)
	s.Mu.Unlock()
	descriptor, err := host.NewReadyFile(int(one.size), func() bool {
		wire.Crash("server-readying")
		return !one.givenUp.Load()
	})
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if p.making == one {
		p.making = nil
	}
	switch {
	case one.givenUp.Load():
		d.lingering -= one.size
		if err == nil && descriptor >= 0 {
			_ = unix.Close(descriptor)
		}
	case err != nil:
		d.used -= one.size
	default:
		wire.Record(descriptor)
		one.descriptor = descriptor
		p.ready = one
		wire.Crash("server-ready")
	}
}

// giveUpSpare has the room of what is ready, or becomes so, be others'. What is being made is there until
// the next part of it would be: it lingers. The lock is held.
func (s *Server) giveUpSpare() {
	p := &s.spares
	d := s.DomainOf(backends.UUID{})
	if one := p.ready; one != nil {
		p.ready = nil
		d.used -= one.size
		_ = wire.CloseRecorded(one.descriptor)
	}
	if one := p.making; one != nil {
		one.givenUp.Store(true)
		p.making = nil
		d.used -= one.size
		d.lingering += one.size
	}
}

// takeSpare returns a descriptor of memory of some bytes that was ready, in whole or in part, and
// counts them; -1 where there is none for it. The lock is let go of while it is cut.
func (s *Server) takeSpare(d *domain, bytes int64) (descriptor int, err error) {
	p := &s.spares
	if !p.fits(bytes) {
		return -1, nil
	}
	one := p.ready
	if one == nil {
		p.misses++
		return -1, nil
	}
	more := bytes - one.size
	if more > d.limit-d.used+d.idle.bytes+d.leaving {
		return -1, s.full(d, bytes)
	}
	p.ready = nil
	if more > 0 {
		if err := s.room(d, more); err != nil {
			_ = wire.CloseRecorded(one.descriptor)
			d.used -= one.size
			return -1, err
		}
	}
	s.pause(func() {
		err = host.FinishReadyFile(one.descriptor, int(bytes))
		wire.Crash("server-taken")
	})
	d.used -= max(-more, 0)
	if err != nil {
		_ = wire.CloseRecorded(one.descriptor)
		d.used -= bytes
		p.misses++
		return -1, nil
	}
	p.hits++
	return one.descriptor, nil
}

// readyIn is how much is ready of a memory.
func (s *Server) readyIn(d *domain) int64 {
	if one := s.spares.ready; one != nil && d.device == (backends.UUID{}) {
		return one.size
	}
	return 0
}
