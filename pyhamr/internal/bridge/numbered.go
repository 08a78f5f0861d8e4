package bridge

import (
	"math/rand/v2"
	"sync"
)

// numbered are things that Python and C name by numbers. They start elsewhere in every copy of the
// library, so that those of a parent process are unknown in a forked child.
type numbered[T any] struct {
	mutex   sync.Mutex
	open    map[uint64]T
	last    uint64
	unknown func(number uint64) error // what is said of a number that nothing has
}

func newNumbered[T any](unknown func(number uint64) error) *numbered[T] {
	return &numbered[T]{open: map[uint64]T{}, last: 1<<62 | uint64(rand.Uint32())<<30, unknown: unknown}
}

// keep gives a thing a number, which is never 0.
func (n *numbered[T]) keep(thing T) (number uint64) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.last++
	n.open[n.last] = thing
	return n.last
}

func (n *numbered[T]) get(number uint64) (thing T, err error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	thing, ok := n.open[number]
	if !ok {
		err = n.unknown(number)
	}
	return thing, err
}

// take is get, once.
func (n *numbered[T]) take(number uint64) (thing T, err error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	thing, ok := n.open[number]
	if !ok {
		err = n.unknown(number)
	}
	delete(n.open, number)
	return thing, err
}

// put gives a thing its number again.
func (n *numbered[T]) put(number uint64, thing T) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.open[number] = thing
}
