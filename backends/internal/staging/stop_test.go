package staging

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// TestAStopEndsATransfer has a device stand still in the middle of transfers, which end nevertheless.
// What they used, they use no more; what the device has yet to do with chunks, it does.
func TestAStopEndsATransfer(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 7))
		d := &lateDevice{random: random, marks: &marks{over: map[uintptr]func() bool{}}, memory: make([]byte, 1000)}
		e := &Engine{Threads: 2, Chunk: 16, Limit: 16 * 8, folds: random.IntN(4)}
		first := randomBytes(random, 1000)
		require.NoError(t, e.Upload(d, first))
		d.finish()
		for _, up := range []bool{true, false} {
			host := randomBytes(random, 1000)
			d.stop = new(backends.Stop)
			d.hold(true)
			later := time.AfterFunc(time.Millisecond, d.stop.Ask)
			hopeless := time.AfterFunc(5*time.Second, func() { d.hold(false) })
			move := e.Download
			if up {
				move = e.Upload
			}
			require.ErrorIs(t, move(d, host), backends.ErrStopped)
			assert.True(t, hopeless.Stop(), "it ended by itself")
			later.Stop()
			clear(host) // the race detector tells who still uses it
			d.hold(false)
			d.finish()
			assert.Equal(t, make([]byte, 1000), host)
			d.stop = nil
			again := randomBytes(random, 1000)
			require.NoError(t, e.Upload(d, again))
			require.NoError(t, e.Download(d, host))
			assert.Equal(t, again, host)
		}
		assert.Len(t, e.idle, e.Held()/16, "every chunk is there again")
	}
}

func TestAStopBeforehandBeginsNothing(t *testing.T) {
	d := &lateDevice{random: rand.New(rand.NewPCG(1, 8)), marks: &marks{over: map[uintptr]func() bool{}},
		memory: make([]byte, 100), stop: new(backends.Stop)}
	d.stop.Ask()
	e := &Engine{Threads: 2, Chunk: 16}
	require.ErrorIs(t, e.Upload(d, make([]byte, 100)), backends.ErrStopped)
	assert.Empty(t, d.queue)
}

func (d *lateDevice) hold(still bool) {
	d.marks.mutex.Lock()
	defer d.marks.mutex.Unlock()
	d.still = still
}

// TestChunksOfAStoppedTransferAreWaitedFor by the transfers of others.
func TestChunksOfAStoppedTransferAreWaitedFor(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	shared := &marks{over: map[uintptr]func() bool{}}
	stopped := &lateDevice{random: random, marks: shared, memory: make([]byte, 1000), stop: new(backends.Stop),
		still: true}
	other := &lateDevice{random: random, marks: shared, memory: make([]byte, 1000)}
	e := &Engine{Threads: 2, Chunk: 16, Limit: 16 * 8}
	time.AfterFunc(time.Millisecond, stopped.stop.Ask)
	sent := randomBytes(random, 1000)
	require.ErrorIs(t, e.Upload(stopped, sent), backends.ErrStopped)
	var group sync.WaitGroup
	group.Go(func() {
		time.Sleep(5 * time.Millisecond)
		stopped.finish()
	})
	mine := randomBytes(random, 1000)
	require.NoError(t, e.Upload(other, mine))
	group.Wait()
	other.finish()
	assert.Equal(t, mine, other.memory)
	for i, b := range stopped.memory {
		if b != 0 && b != sent[i] {
			t.Fatalf("byte %d, which was enqueued, came as %d, not as %d", i, b, sent[i])
		}
	}
	assert.NotEmpty(t, stopped.queue)
}
