package hetero

import (
	"slices"
	"sync"
	"time"

	"hamr/backends/waiting"
)

const (
	// restFraction of how long the youngest event has been watched is the pause between looks:
	// what has ended is noticed soon beside what it took.
	restFraction = 128
	leastRest    = 10 * time.Microsecond
	// mostSleep is the longest pause that nothing ends. Longer ones, of at most mostRest, end when
	// another event is to be watched.
	mostSleep = 200 * time.Microsecond
	mostRest  = 20 * time.Millisecond
)

// Watched is an event that is watched.
type Watched uint64

// watcher asks all events that are watched, on one goroutine, which ends when there are none.
type watcher struct {
	mutex sync.Mutex
	last  Watched
	list  []*watched    // in the order of their numbers
	added chan struct{} // there is a goroutine; holds whether it must look at once
}

type watched struct {
	number Watched
	ask    func() (done bool, err error)
	told   func(error)
	since  time.Time

	asking sync.Mutex // held while event is asked
	ended  bool       // it is told, or was unwatched
}

func (w *watcher) add(e *watched) Watched {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.last++
	e.number, e.since = w.last, time.Now()
	w.list = append(w.list, e)
	if w.added == nil {
		w.added = make(chan struct{}, 1)
		go w.run(w.added)
		return e.number
	}
	select {
	case w.added <- struct{}{}:
	default:
	}
	return e.number
}

func (w *watcher) remove(number Watched) bool {
	w.mutex.Lock()
	i, found := w.find(number)
	if !found {
		w.mutex.Unlock()
		return false
	}
	e := w.list[i]
	w.mutex.Unlock()
	//mutate:replace an event is told and unwatched
	//mutate:with !e.end() => e.end(); false
	if !e.end() {
		return false
	}
	w.forget(e)
	return true
}

func (w *watcher) find(number Watched) (int, bool) {
	return slices.BinarySearchFunc(w.list, number, func(e *watched, n Watched) int {
		switch {
		case e.number < n:
			return -1
		case e.number > n:
			return 1
		}
		return 0
	})
}

func (w *watcher) forget(e *watched) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if i, found := w.find(e.number); found {
		w.list = slices.Delete(w.list, i, i+1)
	}
}

// end reports whether nobody had ended it before.
func (e *watched) end() bool {
	e.asking.Lock()
	defer e.asking.Unlock()
	before := e.ended
	e.ended = true
	return !before
}

// look asks the event, and reports whether it is to be told, and what.
func (e *watched) look() (over bool, err error) {
	e.asking.Lock()
	defer e.asking.Unlock()
	//mutate:never an event is asked that nobody watches any more
	if e.ended {
		return false, nil
	}
	done, err := e.ask()
	e.ended = done || err != nil
	return e.ended, err
}

func (w *watcher) run(added chan struct{}) {
	var pauses waiting.Pauses
	defer pauses.End()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var list []*watched
	for {
		w.mutex.Lock()
		if len(w.list) == 0 {
			w.list, w.added = nil, nil
			w.mutex.Unlock()
			return
		}
		list = append(list[:0], w.list...)
		w.mutex.Unlock()
		told := false
		for _, e := range list {
			if over, err := e.look(); over {
				w.forget(e)
				e.told(err)
				told = true
			}
		}
		youngest := list[len(list)-1].since
		clear(list)
		if told {
			continue
		}
		pause := min(max(time.Since(youngest)/restFraction, leastRest), mostRest)
		if pause <= mostSleep {
			pauses.Sleep(pause)
			continue
		}
		pauses.End()
		timer.Reset(pause)
		select {
		case <-added:
		case <-timer.C:
		}
	}
}
