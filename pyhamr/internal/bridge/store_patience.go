package bridge

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hamr/internal/deadline"
	"hamr/store"
)

// storeBusy is the reply of a call that goes on: StoreProceed tells its outcome.
const storeBusy = "?"

// storeWait is a call of the store's that goes on while Python handles signals, or the outcome of
// the last one, which an exception of a handler may have taken from Python.
type storeWait struct {
	operation
	end   context.CancelFunc
	reply string
	undo  func(reply string)
	taken bool // Python has the outcome
}

// storeWaits are those calls by the numbers that Python gives them.
var storeWaits = struct {
	sync.Mutex
	calls map[uint64]*storeWait
}{calls: map[uint64]*storeWait{}}

// patiently calls f with a context that StoreStop ends. On the thread that handles Python's
// signals it returns after a slice at the latest, and undo, which may be nil, gives back what a
// reply tells of that nobody took.
func patiently(number uint64, undo func(reply string), f func(ctx context.Context) (string, error)) (string, error) {
	storeEndings.now()
	if !handlesSignals() {
		return f(context.Background())
	}
	ctx, end := context.WithCancel(context.Background())
	w := &storeWait{operation: operation{over: make(chan struct{})}, end: end, undo: undo}
	w.note(number)
	go func() {
		defer end()
		defer close(w.over)
		defer storeReply(&w.reply, &w.err)
		defer Guard(&w.err)
		w.reply, w.err = f(ctx)
	}()
	return w.outcome()
}

// note has StoreProceed and StoreStop find a call.
func (w *storeWait) note(number uint64) {
	storeWaits.Lock()
	defer storeWaits.Unlock()
	for other, its := range storeWaits.calls {
		if its.taken { // and not just over: a signal's handler makes calls while the thread's own one goes on
			delete(storeWaits.calls, other)
		}
	}
	storeWaits.calls[number] = w
}

// noteOutcome has StoreStop undo what was done at once: an exception of a signal's handler takes the reply from Python
// that comes while the signal does.
func noteOutcome(number uint64, undo func(reply string), reply string, err error) {
	if undo == nil || err != nil {
		return
	}
	w := &storeWait{operation: operation{over: make(chan struct{})}, end: func() {}, reply: reply, undo: undo, taken: true}
	close(w.over)
	w.note(number)
}

// promptly is patiently for what may be asked twice: on this thread at first, as an answer that
// comes at once comes sooner by that.
func promptly(number uint64, undo func(reply string), f func(ctx context.Context) (string, error)) (string, error) {
	storeEndings.now()
	if handlesSignals() {
		soon := newSliceContext()
		reply, err := f(soon)
		soon.End()
		if !errors.Is(err, context.DeadlineExceeded) {
			noteOutcome(number, undo, reply, err)
			return reply, err
		}
	}
	return patiently(number, undo, f)
}

func newSliceContext() *deadline.Context {
	return deadline.Until(context.Background(), time.Now().Add(slice))
}

// handlesSignals reports whether this is Python's main thread, which is a process's first one, in
// a forked child, too.
func handlesSignals() bool { return unix.Gettid() == os.Getpid() }

// outcome is that of the call, or storeBusy after a slice.
func (w *storeWait) outcome() (string, error) {
	if !w.wait() {
		return storeBusy, nil
	}
	storeWaits.Lock()
	w.taken = true
	storeWaits.Unlock()
	return w.reply, w.err
}

// StoreProceed waits for a call for one more slice.
func StoreProceed(number uint64) (string, error) {
	storeWaits.Lock()
	w := storeWaits.calls[number]
	storeWaits.Unlock()
	if w == nil {
		return "", store.ErrClosed
	}
	return w.outcome()
}

// StoreStop ends a call whose outcome nobody is to have, and gives back what it has got.
func StoreStop(number uint64) {
	storeWaits.Lock()
	w := storeWaits.calls[number]
	delete(storeWaits.calls, number)
	storeWaits.Unlock()
	if w == nil {
		return
	}
	w.end()
	<-w.over
	if w.err == nil && w.undo != nil && !strings.HasPrefix(w.reply, "!") {
		w.undo(w.reply)
	}
}
