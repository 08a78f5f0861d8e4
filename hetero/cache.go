package hetero

import (
	"errors"
	"fmt"
	"sync"

	"hamr/backends"
)

// cache is the streams and events of a place. No call of a backend is made with its mutex held.
type cache struct {
	place   Place
	backend backends.Backend
	streams backends.Streams
	watcher *watcher                                     // the Scheduler's
	leave   func(backends.Stream) (over bool, err error) // makes memory do without a stream that is about to end

	mutex        sync.Mutex
	idleStreams  queue[backends.Stream] // given back: their work may still run
	idleEvents   queue[backends.Event]  // likewise
	out          map[backends.Stream]struct{}
	all          map[backends.Stream]struct{} // that have been made and not destroyed
	streamCounts CacheCounts                  // without Kept and Out
	eventCounts  CacheCounts
}

// CacheCounts are those of streams or of events. Made is Destroyed, Kept and Out together.
type CacheCounts struct {
	Made, Destroyed int
	Kept            int   // given back, whether their work is done or not
	Out             int   // handed out
	Hits, Misses    int64 // how often one of those kept was handed out, and how often one was made
}

// CacheStatistics are those of a place.
type CacheStatistics struct {
	Place   Place
	Streams CacheCounts
	Events  CacheCounts
}

func (c *cache) waitFor(stream backends.Stream, e backends.Event) (waits bool, err error) {
	done, err := c.streams.Done(c.place.Device, e)
	//mutate:replace a stream waits for an event that is done
	//mutate:with done => done && false
	if done || err != nil {
		return false, err
	}
	return true, c.streams.Wait(c.place.Device, stream, e)
}

func (c *cache) takeStream() (backends.Stream, error) {
	c.mutex.Lock()
	stream, some := c.idleStreams.pop()
	c.mutex.Unlock()
	if some {
		idle, err := c.settled(stream)
		if err != nil {
			return 0, err
		}
		c.mutex.Lock()
		if idle {
			c.out[stream] = struct{}{}
			c.streamCounts.Hits++
		} else {
			c.idleStreams.push(stream)
		}
		c.mutex.Unlock()
		if idle {
			return stream, nil
		}
	}
	stream, err := c.streams.NewStream(c.place.Device)
	if err != nil {
		return 0, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.out[stream], c.all[stream] = struct{}{}, struct{}{}
	c.streamCounts.Made++
	c.streamCounts.Misses++
	return stream, nil
}

// settled reports whether a stream that nobody has is idle. One whose work has failed is destroyed.
func (c *cache) settled(stream backends.Stream) (idle bool, err error) {
	idle, err = c.streams.Idle(c.place.Device, stream)
	if err != nil {
		return false, errors.Join(c.earlier(err), c.destroyStream(stream))
	}
	//mutate:replace a stream is handed out that has work
	//mutate:with idle => true
	return idle, nil
}

func (c *cache) giveStream(stream backends.Stream) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, ours := c.out[stream]; !ours {
		return valueError("stream", fmt.Sprintf("%#x", uintptr(stream)),
			"one that TakeStream has handed out on "+c.place.String()+", once")
	}
	delete(c.out, stream)
	c.idleStreams.push(stream)
	return nil
}

func (c *cache) record(stream backends.Stream) (backends.Event, error) {
	e, err := c.takeEvent()
	if err != nil {
		return 0, err
	}
	if err := c.streams.Record(c.place.Device, e, stream); err != nil {
		//mutate:remove an event is lost whose record failed
		c.giveEvent(e)
		return 0, err
	}
	return e, nil
}

func (c *cache) takeEvent() (backends.Event, error) {
	c.mutex.Lock()
	e, some := c.idleEvents.pop()
	if some {
		c.eventCounts.Hits++
	}
	c.mutex.Unlock()
	if some {
		done, err := c.streams.Done(c.place.Device, e)
		//mutate:replace an event is handed out that is pending
		//mutate:with done && err == nil => done || err == nil
		if done && err == nil {
			return e, nil
		}
		c.mutex.Lock()
		c.eventCounts.Hits--
		if err == nil {
			// The next one to be asked is another: an event of long work keeps none from reuse.
			c.idleEvents.push(e)
		}
		c.mutex.Unlock()
		if err != nil {
			return 0, errors.Join(c.earlier(err), c.destroyEvent(e))
		}
	}
	e, err := c.streams.NewEvent(c.place.Device)
	if err != nil {
		return 0, err
	}
	c.mutex.Lock()
	c.eventCounts.Made++
	c.eventCounts.Misses++
	c.mutex.Unlock()
	return e, nil
}

func (c *cache) giveEvent(e backends.Event) {
	c.mutex.Lock()
	c.idleEvents.push(e)
	c.mutex.Unlock()
}

// earlier says whose error that is.
func (c *cache) earlier(err error) error {
	return fmt.Errorf("work that was enqueued before on %s: %w", c.place, err)
}

// destroyEvent destroys an event that is handed out. One that cannot be destroyed is kept.
func (c *cache) destroyEvent(e backends.Event) error {
	err := c.streams.DestroyEvent(c.place.Device, e)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err != nil {
		c.idleEvents.push(e)
		return err
	}
	c.eventCounts.Destroyed++
	return nil
}

// destroyStream destroys a stream that nobody has. One that cannot be destroyed is kept.
func (c *cache) destroyStream(stream backends.Stream) error {
	over, err := c.leave(stream)
	if over && err == nil {
		// Before the handle may be another stream's.
		c.mutex.Lock()
		delete(c.all, stream)
		c.mutex.Unlock()
		err = c.streams.DestroyStream(c.place.Device, stream)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !over || err != nil {
		c.all[stream] = struct{}{}
		c.idleStreams.push(stream)
		return err
	}
	c.streamCounts.Destroyed++
	return nil
}

func (c *cache) trim() (failed error) {
	c.mutex.Lock()
	streams, events := c.idleStreams, c.idleEvents
	c.idleStreams, c.idleEvents = queue[backends.Stream]{}, queue[backends.Event]{}
	c.mutex.Unlock()
	note := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	for stream, some := streams.pop(); some; stream, some = streams.pop() {
		idle, err := c.settled(stream)
		if note(err); err != nil {
			continue
		}
		if idle {
			note(c.destroyStream(stream))
			continue
		}
		c.mutex.Lock()
		c.idleStreams.push(stream)
		c.mutex.Unlock()
	}
	for e, some := events.pop(); some; e, some = events.pop() {
		done, err := c.streams.Done(c.place.Device, e)
		if err != nil {
			note(c.earlier(err))
		}
		//mutate:always events are trimmed that are pending
		if done || err != nil {
			note(c.destroyEvent(e))
			continue
		}
		c.giveEvent(e)
	}
	return failed
}

func (c *cache) statistics() CacheStatistics {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return CacheStatistics{
		Place:   c.place,
		Streams: c.streamCounts.with(c.idleStreams.count),
		Events:  c.eventCounts.with(c.idleEvents.count),
	}
}

func (n CacheCounts) with(kept int) CacheCounts {
	n.Kept = kept
	n.Out = n.Made - n.Destroyed - kept
	return n
}
