// Package worker calls functions on one OS thread, for runtimes that are to be called on no
// other: OpenMP's, where a thread is not one that the runtime knows.
package worker

import (
	"runtime"
	"sync"
)

// Worker has a thread of its own from its first call on, which ends some time after nobody can
// reach the Worker any more. It is safe for concurrent use.
type Worker struct {
	start sync.Once
	calls chan *call
}

type call struct {
	run      func()
	over     chan struct{}
	panicked any
}

// Do runs f on the worker's thread, one such function at a time, and returns when it has. A panic
// of f's is the caller's. f must not call Do.
func (w *Worker) Do(f func()) {
	w.start.Do(func() {
		w.calls = make(chan *call)
		go work(w.calls)
		runtime.AddCleanup(w, func(calls chan *call) { close(calls) }, w.calls)
	})
	c := &call{run: f, over: make(chan struct{})}
	w.calls <- c
	<-c.over
	runtime.KeepAlive(w) // nobody may close what it is sent by
	if c.panicked != nil {
		panic(c.panicked)
	}
}

func work(calls <-chan *call) {
	runtime.LockOSThread()
	for c := range calls {
		c.do()
	}
}

func (c *call) do() {
	defer close(c.over)
	defer func() { c.panicked = recover() }()
	c.run()
}
