package bridge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"hamr/backends"
	"hamr/gobuffer"
)

// table hands out a token for each reference that Python holds. A token is the slot's number and how often the slot was
// used, so that a stale token is noticed instead of meaning somebody else's memory.
type table struct {
	mutex sync.Mutex
	slots []slot
	free  []uint32
	first uint32 // where the use counts start

	searches []*search // under way
}

type slot struct {
	memory *gobuffer.Memory
	use    uint32
}

// Counts start elsewhere in every copy of the library, so that a token of the
// parent process is stale in a forked child.
var tokens = table{first: rand.Uint32()}

// put makes a token for a reference, which the table takes over.
func (t *table) put(m *gobuffer.Memory) uint64 {
	t.mutex.Lock()
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{use: t.first})
	}
	s := &t.slots[i]
	s.memory = m
	s.use++
	if s.use == 0 {
		s.use = 1
	}
	token := uint64(s.use)<<32 | uint64(i)
	for _, search := range t.searches {
		search.filled(i)
	}
	t.mutex.Unlock()
	return token
}

// get returns a new reference to the memory that token stands for.
func (t *table) get(token uint64) (*gobuffer.Memory, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	s, err := t.find(token)
	if err != nil {
		return nil, err
	}
	return s.memory.Retain(), nil
}

// take ends the token and hands its reference over.
func (t *table) take(token uint64) (*gobuffer.Memory, error) {
	t.mutex.Lock()
	s, err := t.find(token)
	if err != nil {
		t.mutex.Unlock()
		return nil, err
	}
	m := s.memory
	s.memory = nil
	t.free = append(t.free, uint32(token))
	t.mutex.Unlock()
	return m, nil
}

// release ends the token and drops its reference where that waits for nobody; else it reports
// false, and the token is what it was. Searches see the memory until it is over.
func (t *table) release(token uint64) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	s, err := t.find(token)
	if err != nil || !s.memory.ReleaseAtOnce() {
		return false
	}
	s.memory = nil
	t.free = append(t.free, uint32(token))
	return true
}

func (t *table) find(token uint64) (*slot, error) {
	i, use := uint32(token), uint32(token>>32)
	if int(i) >= len(t.slots) || t.slots[i].use != use || t.slots[i].memory == nil {
		return nil, fmt.Errorf("%w (token %#x)", gobuffer.ErrFreed, token)
	}
	return &t.slots[i], nil
}

// mostAtOnce is how many slots a search looks at while other calls wait.
const mostAtOnce = 1024

// search looks for memory that needs a stream, in steps between which other calls reach
// the table. What is there from its start to its end it finds, whatever token that has.
type search struct {
	table  *table
	stream backends.Stream
	next   int      // the first slot not looked at
	behind []uint32 // slots before it that were filled since
	found  []*gobuffer.Memory
}

func (t *table) search(s backends.Stream) *search {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	found := &search{table: t, stream: s}
	t.searches = append(t.searches, found)
	return found
}

// filled is told of each slot that gets memory, with the table's mutex held.
func (s *search) filled(i uint32) {
	if int(i) < s.next {
		s.behind = append(s.behind, i)
	}
}

// step reports whether there is more to look at. Found memory has a reference for the caller.
func (s *search) step() bool {
	t := s.table
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for left := mostAtOnce; left > 0; left-- {
		switch last := len(s.behind) - 1; {
		case s.next < len(t.slots):
			s.look(s.next)
			s.next++
		case last >= 0:
			s.look(int(s.behind[last]))
			s.behind = s.behind[:last]
		default:
			t.searches = slices.DeleteFunc(t.searches, func(other *search) bool { return other == s })
			return false
		}
	}
	return true
}

func (s *search) look(i int) {
	if m := s.table.slots[i].memory; m != nil && m.Uses(s.stream) {
		s.found = append(s.found, m.Retain())
	}
}

// using returns a new reference to each memory that Python holds and that needs a stream: few of many.
func (t *table) using(s backends.Stream) []*gobuffer.Memory {
	search := t.search(s)
	for search.step() {
		continue
	}
	return search.found
}
