package bridge

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// tallied is something that is to end once.
type tallied struct {
	slow  time.Duration
	times atomic.Int32
}

func (c *tallied) end() {
	time.Sleep(c.slow)
	c.times.Add(1)
}

// TestEndingsAtRandom has several goroutines let go of things in both ways. When now returns, what its caller has
// let go of before has ended; in the end all has, once.
func TestEndingsAtRandom(t *testing.T) {
	var e endings
	var all [4][]*tallied
	var walkers sync.WaitGroup
	for i := range all {
		walkers.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(i), 15))
			for range 300 {
				one := &tallied{slow: time.Duration(chance.IntN(3)) * 10 * time.Microsecond}
				all[i] = append(all[i], one)
				if chance.IntN(2) == 0 {
					e.later(one)
				} else {
					e.aside(one)
				}
				if chance.IntN(5) > 0 {
					continue
				}
				e.now()
				for _, mine := range all[i] {
					if !assert.EqualValues(t, 1, mine.times.Load()) {
						return
					}
				}
			}
		})
	}
	walkers.Wait()
	e.now()
	for _, list := range all {
		for _, each := range list {
			assert.EqualValues(t, 1, each.times.Load())
		}
	}
	assert.Zero(t, e.open.Load())
}

// TestEndingsThatNobodyAsksFor end by themselves.
func TestEndingsThatNobodyAsksFor(t *testing.T) {
	var e endings
	for _, begin := range []func(ending){e.later, e.aside} {
		one := new(tallied)
		begin(one)
		assert.Eventually(t, func() bool { return one.times.Load() == 1 && e.open.Load() == 0 }, time.Minute,
			time.Millisecond)
	}
}
