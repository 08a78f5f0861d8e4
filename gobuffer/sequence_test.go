package gobuffer

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
		s, p := newSequence(), &plainOrder{
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
				number := s.enqueue(q)
				p.last[q]++
				require.Equal(t, p.last[q], number)
				p.of(q)[plainWork{q, number}] = true
				done = fmt.Sprint("enqueue ", q)
			case 4, 5:
				s.record(e, q)
				p.events[e] = maps.Clone(p.of(q))
				done = fmt.Sprint("record ", e, q)
			case 6, 7:
				s.wait(q, e)
				maps.Copy(p.of(q), p.events[e])
				done = fmt.Sprint("wait ", q, e)
			case 8:
				if len(closed) > 0 && r.IntN(2) == 0 {
					other = closed[r.IntN(len(closed))]
				}
				s.after(q, other)
				maps.Copy(p.of(q), p.of(other))
				done = fmt.Sprint("after ", q, other)
			case 9:
				if len(closed) > 0 && r.IntN(2) == 0 {
					q = closed[r.IntN(len(closed))]
				}
				s.finish(q)
				p.end(p.of(q))
				done = fmt.Sprint("finish ", q)
			case 10:
				s.reach(e)
				p.end(p.events[e])
				done = fmt.Sprint("reach ", e)
			case 11:
				if r.IntN(3) == 0 {
					s.forget(e)
					delete(p.events, e)
				} else if r.IntN(3) == 0 {
					open := s.close(q)
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
					require.Equal(t, p.over[w], s.isOver(other, number), "seed %d, step %d, %s: %v over", seed, step, done, w)
					for _, next := range queues {
						want := p.over[w] || p.of(next)[w]
						require.Equal(t, want, s.comesBefore(other, number, next), "seed %d, step %d, %s: %v before %d", seed, step, done, w, next)
					}
				}
			}
		}
	}
}

// TestASequenceForgetsWhatIsOver has queues come and go, as streams do in a long run.
func TestASequenceForgetsWhatIsOver(t *testing.T) {
	s := newSequence()
	for q := backends.Queue(2); q < 1000; q++ {
		s.enqueue(q)
		s.after(1, q)
		s.enqueue(1)
		s.close(q)
		s.finish(1)
	}
	require.Len(t, s.queues, 1)
	require.LessOrEqual(t, len(s.over), 1)
	require.Empty(t, s.until(1))
	require.LessOrEqual(t, len(s.queues[1].before), 1)
}

// TestAPointerBehindMemoryIsNoUseOfTheNext has kernels that were given where memory begins and where it ends, which is where
// memory begins that was freed.
func TestAPointerBehindMemoryIsNoUseOfTheNext(t *testing.T) {
	for _, with := range []struct {
		others []backends.Touch
		wrong  int
	}{
		{nil, 1},
		{[]backends.Touch{{Address: 1000, Size: 1}}, 0},
		{[]backends.Touch{{Address: 1511, Size: 1}}, 0},
		{[]backends.Touch{{Address: 999, Size: 1}}, 1},
		{[]backends.Touch{{Address: 1000, Size: 512, Writes: backends.OnlyReads}}, 0},
		{[]backends.Touch{{Address: 1000, Size: 1}, {Address: 5, Size: 1}}, 0},
	} {
		c := &Checker{}
		w := newWitness(c)
		for i := range 2 {
			m := &Memory{owned: true, region: backends.Region{Address: backends.Address(1000 + 512*i)}}
			m.size.Store(512)
			w.add(m)
			if i == 1 {
				w.freed(m, &keptMemory{memory: m, size: 512})
			}
		}
		for _, end := range []backends.Touch{{Address: 1512, Size: 1}, {Address: 1513, Size: 1}, {Address: 1512, Size: 1, Writes: backends.DoesWrite}} {
			_, then := w.Enqueue(backends.Work{Queue: 1, Name: "kernel", Touches: append(with.others, end)})
			if then != nil {
				then()
			}
			found := c.found
			c.found, w.told = nil, map[tellOnce]bool{}
			if end.Address != 1512 || end.Writes != backends.MayWrite {
				require.Len(t, found, 1, "%v %v", with.others, end)
			} else {
				require.Len(t, found, with.wrong, "%v %v", with.others, end)
			}
		}
	}
}
