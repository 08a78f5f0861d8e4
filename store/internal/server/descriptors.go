package server

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// MostUnits is how many units a server may have, as each has a descriptor. What else the process can open is left to
// connections, of which each has two, and to files that are open for a moment: a quarter at most, or 40 of few.
func MostUnits(sessions int) int64 {
	files := int64(wire.FilesLimit())
	return files - min(int64(2*sessions+64), max(files/4, min(files/2, 40)))
}

// claim counts one more unit. Where there are too many, what may be evicted goes.
func (s *Server) claim() error {
	//mutate:never descriptors are no limit
	for s.Open >= MostUnits(s.Options.MaxSessions) { // which may change
		if !s.evictOldest() {
			return s.fullOfDescriptors()
		}
	}
	s.Open++
	return nil
}

// unclaim takes back what a unit has counted that does not come to be.
func (s *Server) unclaim(u *unit) {
	u.domain.used -= u.size
	s.Open--
}

func (s *Server) fullOfDescriptors() error {
	return &protocol.FullError{Memory: protocol.MemoryDescriptors, Needed: 1, Limit: int64(wire.FilesLimit()), Used: s.Open}
}

// evictOldest evicts a unit of whatever memory, so that its descriptor is free, and reports whether there was any.
func (s *Server) evictOldest() bool {
	if s.spares.ready != nil {
		s.giveUpSpare()
		return true
	}
	if e := s.files.oldest; e != nil {
		s.evict(e.unit)
		return true
	}
	for _, d := range s.domains {
		if e := d.goes.oldest; e != nil {
			s.evict(e.unit)
			return true
		}
	}
	return false
}

// retrying calls f again for each unit that was evicted, as long as it fails for want of descriptors.
func (s *Server) retrying(f func() error) error {
	for {
		err := f()
		if !wire.RanOut(err) {
			return err
		}
		if !s.evictOldest() {
			return s.fullOfDescriptors()
		}
	}
}

// one refuses a request that has not one descriptor, of something.
func (c *Conversation) one(what string) error {
	switch {
	case len(c.descriptors) == 1:
		return nil
	case c.short:
		c.Server.evictOldest() // so that the next one has a descriptor
		return c.Server.fullOfDescriptors()
	}
	return &protocol.ProtocolError{Problem: fmt.Sprintf("%d descriptors of one %s", len(c.descriptors), what)}
}

// starved is told that no connection can be accepted for want of descriptors. It evicts something, or has a client,
// where there is one, know why it is turned away.
func (s *Server) starved() (progress bool) {
	s.Mu.Lock()
	freed, full := s.evictOldest(), s.fullOfDescriptors()
	s.Mu.Unlock()
	if freed {
		return true
	}
	if s.kept >= 0 {
		_ = wire.CloseRecorded(s.kept)
		s.kept = -1
	}
	defer s.keepReserve()
	socket, err := s.Listener.acceptNow()
	if err != nil {
		return false
	}
	if _, err := wire.CheckPeer(socket, s.At); err == nil {
		//mutate:replace who cannot be accepted is left to wait
		//mutate:with turnAway(socket, full) => _ = unix.Close(socket)
		turnAway(socket, full)
	}
	_ = unix.Close(socket)
	s.Mu.Lock()
	s.refused++
	s.Mu.Unlock()
	if now := time.Now(); now.Sub(s.complained) > time.Minute {
		s.complained = now
		fmt.Fprintf(os.Stderr, "hamr store: clients are turned away: %v\n", full)
	}
	return true
}

// keepReserve opens a descriptor that serves to turn clients away when there are no others.
func (s *Server) keepReserve() {
	if s.kept < 0 {
		if kept, err := unix.FcntlInt(uintptr(s.Links.Poll.Wake), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			wire.Record(kept)
			s.kept = kept
		}
	}
}
