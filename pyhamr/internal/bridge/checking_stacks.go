package bridge

import (
	"fmt"
	"sync"
	"time"
)

// stackPatience is how long a thread waits for another one to look at its stack: it may have what that one needs.
const stackPatience = 100 * time.Millisecond

// stackQuestions are asked by threads that have no Python stack of their own to tell, as they have let go of Python's
// lock, and answered by one that has that lock.
type stackQuestions struct {
	asked   chan stackQuestion
	mutex   sync.Mutex // of what follows
	last    uint64
	waiting map[uint64]chan int64
}

type stackQuestion struct {
	number uint64
	thread int
}

var stacksAsked = stackQuestions{asked: make(chan stackQuestion), waiting: map[uint64]chan int64{}}

// ask returns a thread's stack by its number, or zero where nobody told it in time.
func (q *stackQuestions) ask(thread int) int64 {
	answer := make(chan int64, 1)
	q.mutex.Lock()
	q.last++
	number := q.last
	q.waiting[number] = answer
	q.mutex.Unlock()
	defer func() {
		q.mutex.Lock()
		delete(q.waiting, number)
		q.mutex.Unlock()
	}()
	late := time.NewTimer(stackPatience)
	defer late.Stop()
	select {
	case q.asked <- stackQuestion{number, thread}:
	case <-late.C:
		return 0
	}
	select {
	case stack := <-answer:
		return stack
	case <-late.C:
		return 0
	}
}

// AskedForStack returns the number of a question and the thread whose stack is asked for, as text, or nothing after so many
// milliseconds.
func AskedForStack(milliseconds int) string {
	late := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
	defer late.Stop()
	select {
	case q := <-stacksAsked.asked:
		if q.number != 0 {
			return fmt.Sprint(q.number, " ", q.thread)
		}
		return ""
	case <-late.C:
		return ""
	}
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
