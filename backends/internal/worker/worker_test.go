package worker

import (
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// init keeps the process's first thread for the tests' main goroutine. It is the one thread that
// stays when a goroutine ends that was locked to it, as the runtime cannot do without it.
func init() { runtime.LockOSThread() }

func TestOneThread(t *testing.T) {
	var w Worker
	threads, running := map[int]bool{}, 0
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				w.Do(func() {
					running++ // a race, if two ran at once
					threads[syscall.Gettid()] = true
					assert.Equal(t, 1, running)
					running--
				})
			}
		})
	}
	group.Wait()
	assert.Len(t, threads, 1)
	assert.NotContains(t, threads, syscall.Gettid())
}

func TestPanicIsTheCallers(t *testing.T) {
	var w Worker
	assert.PanicsWithValue(t, "broken", func() { w.Do(func() { panic("broken") }) })
	done := false
	w.Do(func() { done = true })
	assert.True(t, done, "the worker goes on")
}

// TestTheThreadEndsWithItsWorker looks whether the system still has it.
func TestTheThreadEndsWithItsWorker(t *testing.T) {
	var thread int
	func() {
		w := new(Worker)
		w.Do(func() { thread = syscall.Gettid() })
	}()
	gone := func() bool {
		runtime.GC()
		return syscall.Tgkill(syscall.Getpid(), thread, 0) == syscall.ESRCH
	}
	assert.Eventually(t, gone, 10*time.Second, 10*time.Millisecond)
}
