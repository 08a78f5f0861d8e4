package order

import (
	"errors"
	"slices"
)

// Works is a list whose tickets are held until LetGo.
type Works []*Work

// LetGo releases the tickets.
func (list Works) LetGo() (err error) {
	for _, w := range list {
		if w.Ticket != nil {
			err = errors.Join(err, w.Ticket.Release())
		}
	}
	return err
}

// Cover reports whether one of the works is all that w's stream holds.
func (list Works) Cover(w *Work) bool {
	return slices.ContainsFunc(list, func(v *Work) bool { return v.HoldsAll(w) })
}

// has reports whether one of the works is w, or stands for it.
func (list Works) has(w *Work) bool {
	return slices.ContainsFunc(list, func(v *Work) bool { return v == w || v.of == w })
}

// On is those of the works that stand for all that w's stream holds.
func (list Works) On(w *Work) (found Works) {
	for _, v := range list {
		if v.HoldsAll(w) {
			found = append(found, v)
		}
	}
	return found
}

// Contain reports whether w is one of the works, or all that the stream of one holds.
func (list Works) Contain(w *Work) bool {
	return slices.ContainsFunc(list, func(v *Work) bool { return v == w || w.Ticket == nil && v.HoldsAll(w) })
}

// Among is those of the works that the list contains.
func (list Works) Among(others Works) (found Works) {
	for _, w := range others {
		if list.Contain(w) {
			found = append(found, w)
		}
	}
	return found
}
