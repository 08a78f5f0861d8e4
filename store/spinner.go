package store

import (
	"runtime"
	"time"
)

const (
	// spinFor is how long a thread asks for a reply before it sleeps until there is one: to be woken can take longer
	// than the whole request does.
	spinFor = 80 * time.Microsecond
	// leaderSpinsFor is how long the server asks for requests: whom a maker tells of what it has sealed asks for it.
	leaderSpinsFor = 150 * time.Microsecond
	// mostSkipped is how many times nobody asks so, at most, after some were in vain.
	mostSkipped = 64
)

// spins is whether there are processors to spare for it.
var spins = runtime.NumCPU() >= 4

// spinner asks for what is to come soon, as long as that has been so.
type spinner struct {
	skips   int // how many waits are to sleep at once
	skipped int // and how many did so after the last one that asked in vain
}

// until asks whether something is there, until it is, or for some time.
func (s *spinner) until(most time.Duration, there func() bool) {
	if !spins {
		return
	}
	if s.skips > 0 {
		s.skips--
		return
	}
	for start := time.Now(); !there(); {
		if time.Since(start) > most {
			s.skipped = min(2*s.skipped+1, mostSkipped)
			//mutate:replace who asked for a reply in vain goes on asking
			//mutate:with s.skips = s.skipped => s.skips = 0
			s.skips = s.skipped
			return
		}
	}
	s.skipped = 0
}
