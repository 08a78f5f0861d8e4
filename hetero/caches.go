package hetero

import (
	"cmp"
	"errors"
	"slices"

	"hamr/backends"
)

// TakeStream returns a stream that has no work: one that was given back, or a new one. Of those given
// back the oldest is asked; work that failed on it is the error, and the stream is destroyed.
func (s *Scheduler) TakeStream(p Place) (backends.Stream, error) {
	c, err := s.cacheOf(p)
	if err != nil {
		return 0, err
	}
	return c.takeStream()
}

// Has reports whether a stream is one that TakeStream has made: it does not end when nobody names it.
func (s *Scheduler) Has(stream backends.Stream) bool {
	return slices.ContainsFunc(s.sorted(), func(c *cache) bool {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		_, has := c.all[stream]
		return has
	})
}

// GiveStream gives a stream back that TakeStream has returned. Its work may still run.
func (s *Scheduler) GiveStream(p Place, stream backends.Stream) error {
	c, err := s.cacheOf(p)
	if err != nil {
		return err
	}
	return c.giveStream(stream)
}

// Record returns an event that stands for the work on a stream so far. It was given back before, and
// is done, or is new. Of those given back the oldest is asked; where its work has failed, and nobody
// was told, that is the error: see DropEvent.
func (s *Scheduler) Record(p Place, stream backends.Stream) (backends.Event, error) {
	c, err := s.cacheOf(p)
	if err != nil {
		return 0, err
	}
	return c.record(stream)
}

// GiveEvent gives an event back that Record has returned, once. Its work may still run, and waits for it stay in force.
func (s *Scheduler) GiveEvent(p Place, e backends.Event) error {
	c, err := s.cacheOf(p)
	if err != nil {
		return err
	}
	c.giveEvent(e)
	return nil
}

// AdoptEvents counts events of the backend's for a place as made here, and handed out, which the caller has made.
func (s *Scheduler) AdoptEvents(p Place, count int) error {
	c, err := s.cacheOf(p)
	if err != nil {
		return err
	}
	c.mutex.Lock()
	c.eventCounts.Made += count
	c.mutex.Unlock()
	return nil
}

// DropEvent is GiveEvent of an event whose work has failed and whose error was told: it is destroyed,
// so that nobody is told again.
func (s *Scheduler) DropEvent(p Place, e backends.Event) error {
	c, err := s.cacheOf(p)
	if err != nil {
		return err
	}
	return c.destroyEvent(e)
}

// WaitFor makes later work on a stream wait for an event of the same place, and reports whether it has to: not for an
// event that is done. It does not block. The error may be that of the work which the event stands for.
func (s *Scheduler) WaitFor(p Place, stream backends.Stream, e backends.Event) (waits bool, err error) {
	c, err := s.cacheOf(p)
	if err != nil {
		return false, err
	}
	return c.waitFor(stream, e)
}

// Trim destroys the streams and events that are kept and done. The error is the first of each place
// that any of it had, that of work included; all others are seen to.
func (s *Scheduler) Trim() error {
	var failed []error
	for _, c := range s.sorted() {
		failed = append(failed, c.trim())
	}
	return errors.Join(failed...)
}

// CacheStatistics returns those of each place that was used, sorted by name and number.
func (s *Scheduler) CacheStatistics() []CacheStatistics {
	var list []CacheStatistics
	for _, c := range s.sorted() {
		list = append(list, c.statistics())
	}
	return list
}

// Watch has told called once when the work that an event stands for is over, with nil or with its
// error. told runs on a goroutine that serves all events, so that it should take little time; it may
// call every method. The event is the caller's, who keeps it until then, or until Unwatch.
func (s *Scheduler) Watch(p Place, e backends.Event, told func(error)) (Watched, error) {
	c, err := s.cacheOf(p)
	if err != nil {
		return 0, err
	}
	if told == nil {
		return 0, valueError("told", "nil", "a function")
	}
	ask := func() (bool, error) { return c.streams.Done(p.Device, e) }
	return s.watcher.add(&watched{ask: ask, told: told}), nil
}

// Unwatch ends Watch without a call, and reports whether it did: false is that told was called or is
// being called. When it returns the event is not asked any more.
func (s *Scheduler) Unwatch(w Watched) bool {
	if s == nil {
		return false
	}
	return s.watcher.remove(w)
}

// sorted returns the caches that there are, by name and number.
func (s *Scheduler) sorted() (list []*cache) {
	if s == nil || s.caches.Load() == nil {
		return nil
	}
	for _, c := range *s.caches.Load() {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *cache) int {
		return cmp.Or(cmp.Compare(a.place.Backend, b.place.Backend), cmp.Compare(a.place.Device, b.place.Device))
	})
	return list
}
