package server

import (
	"runtime"

	"hamr/store/internal/chain"
)

// sweepAtOnce is how many names are taken out of a table before others' requests are answered.
const sweepAtOnce = 500

// dropNames has the names of an object that went be nobody's. Nobody finds them any more; where they are many, they
// leave the table later, a part at a time.
func (s *Server) dropNames(names chain.Chain[named]) {
	s.namesThere -= int64(names.Count)
	if s.quiet || names.Count == 0 {
		return
	}
	if s.takeOut(&names); names.Count > 0 {
		s.unswept = append(s.unswept, names)
		s.sweepLater()
	}
}

// takeOut takes some names out of the table that are of an object which went.
func (s *Server) takeOut(names *chain.Chain[named]) {
	for range min(names.Count, sweepAtOnce) {
		n := names.Oldest
		names.Remove(n)
		if s.Names[n.name] == n { // or else another object has it since
			delete(s.Names, n.name)
		}
	}
}

// sweepLater has a goroutine do what takes long and nobody waits for.
func (s *Server) sweepLater() {
	if s.sweeping || s.closed {
		return
	}
	s.sweeping = true
	s.Connections.Add(1)
	go func() {
		defer s.Connections.Done()
		for s.sweep() {
			runtime.Gosched()
		}
	}()
}

// sweep does a part of it, and reports whether there is more.
func (s *Server) sweep() (more bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		return false
	}
	if len(s.unswept) > 0 {
		if s.takeOut(&s.unswept[0]); s.unswept[0].Count == 0 {
			s.unswept = s.unswept[1:]
		}
	}
	s.sweeping = s.Book.Tidy() || len(s.unswept) > 0
	return s.sweeping
}
