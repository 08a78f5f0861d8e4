//go:build trial

package trial

import (
	"slices"
	"time"

	"hamr/backends"
)

// queue keeps no order, as OpenCL's may not: items run in any order, but each runs after those that it is told to. A
// barrier is an item that runs after all earlier ones and before all later ones.
type queue struct {
	handle  backends.Stream
	device  int
	barrier *item
	since   []*item // enqueued after the barrier, and not seen to be done
}

// item is work.
type item struct {
	what   string
	device int
	after  []*item
	parts  []part // that it uses
	run    func() // may be nil
	done   bool
	over   time.Time // when it was done
}

// enqueue adds an item that runs after those given and the queue's barrier.
func (b *Backend) enqueue(q *queue, i *item, after ...*item) *item {
	for _, other := range append(after, q.barrier) {
		if other != nil && !other.done {
			i.after = append(i.after, other)
		}
	}
	i.device = q.device
	b.undone = append(b.undone, i)
	q.since = append(q.since, i)
	b.changed.Broadcast()
	return i
}

// everything is what is on the queue and not done.
func (q *queue) everything() []*item {
	q.since = slices.DeleteFunc(q.since, func(i *item) bool { return i.done })
	return slices.Clone(q.since)
}

// makeBarrier makes an item the queue's barrier.
func (q *queue) makeBarrier(i *item) { q.barrier, q.since = i, []*item{i} }

// enqueueOrdered is enqueue with barriers before and behind: what backends.Streams promises.
func (b *Backend) enqueueOrdered(q *queue, what string, parts []part, run func()) {
	q.makeBarrier(b.enqueue(q, &item{what: what, parts: parts, run: run}, q.everything()...))
}

// do runs an item that is ready.
func (b *Backend) do(i *item) {
	for _, p := range i.parts {
		if p.block != nil && (p.block.freed || p.block.window(p) != nil) {
			_ = b.violate("Execute", "a late %s on memory of allocator %s that is freed or mapped", i.what, p.block.allocator)
			i.run = nil
		}
		if !p.isHosts() {
			_ = b.violate("Execute", "a late %s on memory of allocator %s that is not mapped any more", i.what, p.lent.allocator)
			i.run = nil
		}
	}
	if i.run != nil {
		i.run()
	}
	i.done, i.run, i.after, i.over = true, nil, nil, time.Now()
	b.undone = slices.DeleteFunc(b.undone, func(other *item) bool { return other == i })
	b.changed.Broadcast()
}

// ready are the undone items that nothing keeps from running.
func (b *Backend) ready() (list []*item) {
	for _, i := range b.undone {
		if !slices.ContainsFunc(i.after, func(other *item) bool { return !other.done }) {
			list = append(list, i)
		}
	}
	return list
}

// step does something that may be done now.
func (b *Backend) step() (did bool) {
	list := b.ready()
	if len(list) == 0 {
		return false
	}
	b.do(list[b.random.IntN(len(list))])
	return true
}

// finish does the work that the items need, mixed with any other work that may be done.
func (b *Backend) finish(list ...*item) {
	for _, i := range list {
		for !i.done {
			if b.random.IntN(3) == 0 {
				b.step()
				continue
			}
			next := i
			for {
				first := slices.IndexFunc(next.after, func(other *item) bool { return !other.done })
				if first < 0 {
					break
				}
				next = next.after[first]
			}
			if !next.done {
				b.do(next)
			}
		}
	}
}

// pendingOn is an item that is still to use a part, or nil.
func (b *Backend) pendingOn(p part) *item {
	for _, i := range b.undone {
		if slices.ContainsFunc(i.parts, p.shares) {
			return i
		}
	}
	return nil
}

// work does ready work late and in any order, until the process ends.
func (b *Backend) work() {
	const longest = 200 * time.Microsecond
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for len(b.undone) == 0 {
			b.changed.Wait()
		}
		pause := time.Duration(b.random.Int64N(int64(longest)))
		b.mu.Unlock()
		time.Sleep(pause)
		b.mu.Lock()
		b.step()
	}
}
