package bridge

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// leased is what a lease of an object that was sealed has, of which ended is told.
func leased(t *testing.T, ended func()) *storeObject {
	at := backends.Region{Address: 1 << 20, Allocator: backends.Malloc, Device: backends.HostDevice}
	m, err := Runtime.Adopt(at, 1, 0, ended)
	require.NoError(t, err)
	return &storeObject{written: m}
}

func TestLeasesEndSoon(t *testing.T) {
	var e endings
	var ended atomic.Int64
	count := func() { ended.Add(1) }
	for range 3 {
		e.later(leased(t, count))
	}
	require.Eventually(t, func() bool { return ended.Load() == 3 }, time.Minute, time.Millisecond)
	e.later(leased(t, count))
	require.Eventually(t, func() bool { return ended.Load() == 4 }, time.Minute, time.Millisecond, "and those that follow")
}

// Whoever asks for the end of all leases finds that they have ended, though another one ends them.
func TestLeasesHaveEndedOnceThatIsAskedFor(t *testing.T) {
	var e endings
	var ended atomic.Bool
	begun, goOn := make(chan struct{}), make(chan struct{})
	e.later(leased(t, func() {
		close(begun)
		<-goOn
		ended.Store(true)
	}))
	<-begun // by itself
	found := make(chan bool)
	go func() {
		e.now()
		found <- ended.Load()
	}()
	select {
	case <-found:
		close(goOn)
		t.Fatal("it has not ended")
	case <-time.After(20 * time.Millisecond):
	}
	close(goOn)
	require.True(t, <-found)
}
