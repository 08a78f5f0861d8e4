package server

// queue is an order of units, least recently used first.
type queue struct {
	oldest, newest *entry
	bytes          int64
}

// entry is a unit's place in a queue.
type entry struct {
	unit         *unit
	in           *queue // nil where it is in none
	older, newer *entry
}

// stand has the entry be in a queue, where it was or as the newest, or in none.
func (e *entry) stand(u *unit, q *queue, may bool) {
	if !may {
		q = nil
	}
	if e.in == q {
		return
	}
	e.leave()
	if e.unit = u; q != nil {
		e.join(q)
	}
}

// renew has the entry be the newest of its queue.
func (e *entry) renew() {
	if q := e.in; q != nil && q.newest != e {
		e.leave()
		e.join(q)
	}
}

func (e *entry) join(q *queue) {
	e.in, e.older = q, q.newest
	q.bytes += e.unit.size
	if q.newest != nil {
		q.newest.newer = e
	} else {
		q.oldest = e
	}
	q.newest = e
}

func (e *entry) leave() {
	q := e.in
	if q == nil {
		return
	}
	q.bytes -= e.unit.size
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		q.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		q.newest = e.older
	}
	e.in, e.older, e.newer = nil, nil, nil
}
