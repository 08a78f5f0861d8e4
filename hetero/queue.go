package hetero

// queue is first in, first out. It allocates only to hold more than ever before.
type queue[T any] struct {
	ring  []T // a power of two long
	first int
	count int
}

func (q *queue[T]) push(x T) {
	if q.count == len(q.ring) {
		longer := make([]T, max(2*len(q.ring), 8))
		for i := range q.count {
			longer[i] = q.ring[(q.first+i)&(len(q.ring)-1)]
		}
		q.ring, q.first = longer, 0
	}
	q.ring[(q.first+q.count)&(len(q.ring)-1)] = x
	q.count++
}

func (q *queue[T]) pop() (oldest T, some bool) {
	if q.count == 0 {
		return oldest, false
	}
	oldest = q.ring[q.first]
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.count--
	return oldest, true
}
