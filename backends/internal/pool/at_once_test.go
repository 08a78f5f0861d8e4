package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func TestAtOnce(t *testing.T) {
	p, f := newPool(t, plenty)
	_, ok := p.TakeAtOnce(1000, first)
	assert.False(t, ok, "the stream is not known yet")
	var held []backends.Address
	for range 3 * partPlace {
		held = append(held, p.mustTake(t, f, 1000, first))
	}
	calls := f.total()
	for _, at := range held {
		require.True(t, p.GiveBackAtOnce(at, first))
		assert.False(t, p.GiveBackAtOnce(at, first), "it is not lent")
	}
	for range held {
		at, ok := p.TakeAtOnce(1000, first)
		require.True(t, ok, "it is there, with a part or not")
		assert.Contains(t, held, at)
	}
	assert.Equal(t, calls, f.total(), "the driver is not asked")
	assert.Equal(t, 3*partPlace*2*Alignment, p.Statistics().Lent)
	_, ok = p.TakeAtOnce(Segment, first)
	assert.False(t, ok, "there is none")
	assert.False(t, p.GiveBackAtOnce(5000, first), "it is not the pool's")
}

func TestAtOnceIsOfLastingStreams(t *testing.T) {
	p, f := newPool(t, plenty)
	at := p.mustTake(t, f, 1000, foreign)
	for _, s := range []backends.Stream{foreign, backends.EveryStream} {
		assert.False(t, p.GiveBackAtOnce(at, s))
		_, ok := p.TakeAtOnce(1000, s)
		assert.False(t, ok)
	}
	_, bytes, _ := p.Find(at)
	assert.NotZero(t, bytes, "it is lent still")
	p.workAndGiveBack(t, f, at, foreign)
	p.mustTake(t, f, 10, first)
	_, ok := p.TakeAtOnce(Segment, first)
	assert.False(t, ok)
}

func TestAtOnceWaitsForNobody(t *testing.T) {
	p, f := newPool(t, plenty)
	var held []backends.Address
	for range partPlace + 1 {
		held = append(held, p.mustTake(t, f, 1000, first))
	}
	p.mutex.Lock() // as who asks the driver holds it
	given := 0
	for _, at := range held {
		if p.GiveBackAtOnce(at, first) {
			given++
		}
	}
	assert.Equal(t, partPlace, given)
	_, ok := p.TakeAtOnce(3000, first)
	assert.False(t, ok)
	p.mutex.Unlock()
	_, bytes, _ := p.Find(held[partPlace])
	assert.NotZero(t, bytes, "it is lent still")
}

func TestAtOnceKeepsNoMoreThanMayBe(t *testing.T) {
	p, f := newPool(t, 2*Segment)
	var held []backends.Address
	for range 3 {
		held = append(held, p.mustTake(t, f, Segment, first))
	}
	for _, at := range held[:2] {
		assert.True(t, p.GiveBackAtOnce(at, first))
		delete(f.lent, at)
	}
	assert.False(t, p.GiveBackAtOnce(held[2], first), "the driver takes one")
	p.workAndGiveBack(t, f, held[2], first)
	assert.Equal(t, 2*Segment, f.reserved())
}

func TestAtOnceDestroysNoEvent(t *testing.T) {
	p, f := newPool(t, plenty)
	at := p.mustTake(t, f, 2*Segment, first)
	p.workAndGiveBack(t, f, at, first)
	p.flushed()
	p.mustTake(t, f, 3*Segment, second) // which has asked the first, and made an event of what it holds
	calls := f.total()
	_, ok := p.TakeAtOnce(2*Segment, first)
	assert.False(t, ok, "its end would be the event's")
	assert.Equal(t, calls, f.total())
	assert.Equal(t, at, p.mustTake(t, f, 2*Segment, first))
}

// flushed makes blocks free that parts hold.
func (p *Pool) flushed() {
	p.mutex.Lock()
	p.flush()
	p.mutex.Unlock()
}
