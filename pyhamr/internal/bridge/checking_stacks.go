package bridge

import (
	"sync"
	"time"
)

// How long a thread waits for another one to look at its stack, and how long after one that has waited in vain: it may
// have what that one needs, each time.
const (
	stackPatience   = time.Second
	stackImpatience = 100 * time.Millisecond
)

// stackQuestions are asked by threads that have no Python stack of their own to tell, as they have let go of Python's
// lock, and answered by one that has that lock.
type stackQuestions struct {
	asked   chan stackQuestion
	mutex   sync.Mutex // of what follows
	last    uint64
	waiting map[uint64]chan int64
	inVain  bool
}

type stackQuestion struct {
	number uint64
	thread int
}

var stacksAsked = stackQuestions{asked: make(chan stackQuestion), waiting: map[uint64]chan int64{}}

// ask returns a thread's stack by its number, or zero where nobody told it in time.
func (q *stackQuestions) ask(thread int) (stack int64) {
	answer, inVain := make(chan int64, 1), true
	q.mutex.Lock()
	q.last++
	number, patience := q.last, stackPatience
	if q.inVain {
		patience = stackImpatience
	}
	q.waiting[number] = answer
	q.mutex.Unlock()
	defer func() {
		q.mutex.Lock()
		delete(q.waiting, number)
		q.inVain = inVain
		q.mutex.Unlock()
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case q.asked <- stackQuestion{number, thread}:
	case <-late.C:
		return 0
	}
	select {
	case stack = <-answer:
		inVain = false
	case <-late.C:
	}
	return stack
}

// AskedForStack returns the number of a question and the thread whose stack is asked for, or nothing after so many
// milliseconds.
func AskedForStack(milliseconds int) (Rows, error) {
	late := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
	defer late.Stop()
	select {
	case q := <-stacksAsked.asked:
		if q.number != 0 {
			return one(q.number, q.thread), nil
		}
	case <-late.C:
	}
	return nil, nil
}

// wake has AskedForStack return.
func (q *stackQuestions) wake() {
	select {
	case q.asked <- stackQuestion{}:
	default:
	}
}

// AnswerStack answers a question, if somebody waits still.
func AnswerStack(number uint64, stack int64) {
	q := &stacksAsked
	q.mutex.Lock()
	answer := q.waiting[number]
	delete(q.waiting, number)
	q.mutex.Unlock()
	if answer != nil {
		answer <- stack
	}
}
