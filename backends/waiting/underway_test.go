package waiting

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWaitIsForWhatBeganBefore(t *testing.T) {
	var u Underway
	u.Wait() // for nothing
	first := u.Begin()
	over := make(chan struct{})
	go func() {
		u.Wait()
		close(over)
	}()
	for {
		u.mutex.Lock()
		waits := len(u.waits)
		u.mutex.Unlock()
		if waits > 0 {
			break
		}
	}
	later := u.Begin() // does not wait for who waits
	u.End(first)
	<-over
	assert.True(t, u.Some())
	u.End(later)
	assert.False(t, u.Some())
}
