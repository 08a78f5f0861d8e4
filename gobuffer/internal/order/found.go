package order

import (
	"errors"
	"slices"

	"hamr/backends"
)

// Finder is the ticket of work that may find something, as an index out of range. The first is told who waits for it,
// or for work that took its place.
type Finder interface {
	Ticket
	Found() error
	Settled() bool // there is nobody to be told, as far as is known
}

// mostFound is how many tickets a Uses keeps that may have found something.
const mostFound = 256

// keep keeps w's ticket if it may have found something, and returns those that are kept no longer. The mutex is held.
func (u *Uses) keep(w *Work) (gone Works) {
	if f, ok := w.Ticket.(Finder); !ok || f.Settled() {
		return nil
	}
	w.Ticket.Retain()
	u.found = append(u.found, w)
	u.found = slices.DeleteFunc(u.found, func(each *Work) bool {
		settled := each.Ticket.(Finder).Settled()
		if settled {
			gone = append(gone, each)
		}
		return settled
	})
	if len(u.found) > mostFound {
		gone = append(gone, u.found[0])
		u.found = slices.Delete(u.found, 0, 1)
	}
	return gone
}

// ask returns what the tickets of works have found, which it takes over. It keeps those that are not over.
func (u *Uses) ask(found Works) (failed error) {
	var left Works
	for _, w := range found {
		done, err := w.Ticket.Done()
		if errors.Is(err, backends.ErrCapturing) || err == nil && !done {
			left = append(left, w)
			continue
		}
		failed = errors.Join(failed, err, w.Ticket.Release())
	}
	if len(left) > 0 {
		u.mutex.Lock()
		u.found = append(left, u.found...)
		u.mutex.Unlock()
	}
	return failed
}
