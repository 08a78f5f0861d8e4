package wire

import (
	"runtime"
	"time"
)

const (
	// spinFor is how long a thread asks for a reply before it sleeps until there is one: to be woken can take longer
	// than the whole request does.
	spinFor = 80 * time.Microsecond
	// leaderSpinsFor is how long the server asks for requests: after a seal a process that was told of the object asks
	// for it.
	leaderSpinsFor = 150 * time.Microsecond
	// mostSkipped is how many times nobody asks so, at most, after some were in vain.
	mostSkipped = 64
)

// Spins is whether there are processors to spare for it.
var Spins = runtime.NumCPU() >= 4

// Spinner asks for what is to come soon, as long as that has been so.
type Spinner struct {
	Skips   int // how many waits are to sleep at once
	Skipped int // and how many did so after the last one that asked in vain
}

// until asks whether something is there, until it is, or for some time.
func (s *Spinner) until(most time.Duration, there func() bool) {
	if !Spins {
		return
	}
	if s.Skips > 0 {
		s.Skips--
		return
	}
	for start := time.Now(); !there(); {
		if time.Since(start) > most {
			s.Skipped = min(2*s.Skipped+1, mostSkipped)
			//mutate:replace who asked for a reply in vain goes on asking
			//mutate:with s.Skips = s.Skipped => s.Skips = 0
			s.Skips = s.Skipped
			return
		}
	}
	s.Skipped = 0
}
