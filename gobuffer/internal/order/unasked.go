package order

import (
	"sync"

	"hamr/backends"
)

// Unasked are the streams that Unasked has named, by how many calls name them now.
type Unasked struct {
	mutex sync.Mutex
	calls map[backends.Stream]int
}

func (u *Unasked) Add(s backends.Stream, count int) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.calls == nil {
		u.calls = map[backends.Stream]int{}
	}
	//mutate:replace the first of two calls asks a stream that the second has named
	//mutate:with u.calls[s] == 0 => count < 0
	if u.calls[s] += count; u.calls[s] == 0 {
		delete(u.calls, s)
	}
}

func (u *Unasked) Has(s backends.Stream) bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.calls[s] > 0
}
