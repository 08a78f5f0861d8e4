package worker

import (
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
