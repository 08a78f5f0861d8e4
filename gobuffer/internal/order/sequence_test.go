package order

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// plainOrder is what a sequence stands for, with all that comes before each piece of work written down.
type plainOrder struct {
	next   map[backends.Queue]map[plainWork]bool // what comes before what is enqueued next
	events map[backends.Event]map[plainWork]bool
	over   map[plainWork]bool
	last   map[backends.Queue]uint64
}

type plainWork struct {
	queue  backends.Queue
	number uint64
}

func (p *plainOrder) of(q backends.Queue) map[plainWork]bool {
	if p.next[q] == nil {
		p.next[q] = map[plainWork]bool{}
	}
	return p.next[q]
}

func (p *plainOrder) end(all map[plainWork]bool) {
	for w := range all {
		p.over[w] = true
	}
}

// TestASequenceIsWhatComesBefore walks at random, and compares it with that for each pair of work and queue.
func TestASequenceIsWhatComesBefore(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, p := NewSequence(), &plainOrder{
			next: map[backends.Queue]map[plainWork]bool{}, events: map[backends.Event]map[plainWork]bool{},
			over: map[plainWork]bool{}, last: map[backends.Queue]uint64{},
		}
		queues, newest, closed := []backends.Queue{1, 2, 3}, backends.Queue(3), []backends.Queue(nil)
		for step := range 80 {
			i := r.IntN(len(queues))
			q, other, e := queues[i], queues[r.IntN(len(queues))], backends.Event(r.IntN(4)+1)
			done := ""
			switch r.IntN(12) {
			case 0, 1, 2, 3:
				number := s.Enqueue(q)
				p.last[q]++
				require.Equal(t, p.last[q], number)
				p.of(q)[plainWork{q, number}] = true
				done = fmt.Sprint("enqueue ", q)
			case 4, 5:
				s.Record(e, q)
				p.events[e] = maps.Clone(p.of(q))
				done = fmt.Sprint("record ", e, q)
			case 6, 7:
				s.Wait(q, e)
				maps.Copy(p.of(q), p.events[e])
				done = fmt.Sprint("wait ", q, e)
			case 8:
				if len(closed) > 0 && r.IntN(2) == 0 {
					other = closed[r.IntN(len(closed))]
				}
				s.After(q, other)
				maps.Copy(p.of(q), p.of(other))
				done = fmt.Sprint("after ", q, other)
			case 9:
				if len(closed) > 0 && r.IntN(2) == 0 {
					q = closed[r.IntN(len(closed))]
				}
				s.Finish(q)
				p.end(p.of(q))
				done = fmt.Sprint("finish ", q)
			case 10:
				s.Reach(e)
				p.end(p.events[e])
				done = fmt.Sprint("reach ", e)
			case 11:
				if r.IntN(3) == 0 {
					s.Forget(e)
					delete(p.events, e)
				} else if r.IntN(3) == 0 {
					open := s.Close(q)
					newest++
					queues[i] = newest
					pending := false
					for w := range p.of(q) {
						pending = pending || !p.over[w]
					}
					require.Equal(t, pending, open, "seed %d, step %d: close %d", seed, step, q)
					closed = append(closed, q)
				}
			}
			for other, last := range p.last {
				for number := uint64(1); number <= last; number++ {
					w := plainWork{other, number}
					require.Equal(t, p.over[w], s.IsOver(other, number), "seed %d, step %d, %s: %v over", seed, step, done, w)
					for _, next := range queues {
						want := p.over[w] || p.of(next)[w]
						require.Equal(t, want, s.ComesBefore(other, number, next), "seed %d, step %d, %s: %v before %d", seed, step, done,
							w, next)
					}
				}
			}
		}
	}
}

// TestASequenceForgetsWhatIsOver has queues come and go, as streams do in a long run.
func TestASequenceForgetsWhatIsOver(t *testing.T) {
	s := NewSequence()
	for q := backends.Queue(2); q < 1000; q++ {
		s.Enqueue(q)
		s.After(1, q)
		s.Enqueue(1)
		s.Close(q)
		s.Finish(1)
	}
	require.Len(t, s.queues, 1)
	require.LessOrEqual(t, len(s.over), 1)
	require.Empty(t, s.until(1))
	require.LessOrEqual(t, len(s.queues[1].before), 1)
}
