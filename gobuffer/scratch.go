package gobuffer

import "sync"

// scratch keeps the lists of one operation for the next one. Those of thousands of arrays have megabytes, after which
// Go's collector would run every few calls.
type scratch[T any] struct{ pool sync.Pool }

// take returns a list of n zero values.
func (s *scratch[T]) take(n int) *[]T {
	list, _ := s.pool.Get().(*[]T)
	if list == nil || cap(*list) < n {
		made := make([]T, n)
		return &made
	}
	*list = (*list)[:n]
	return list
}

// give takes back a list that nobody uses any more.
func (s *scratch[T]) give(list *[]T) {
	clear(*list)
	s.pool.Put(list)
}
