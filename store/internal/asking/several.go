package asking

import (
	"context"

	"hamr/store/internal/protocol"
)

// MostAtOnce is how many requests of ExchangeAll are under way at most: the server remembers as many to undo them.
const MostAtOnce = protocol.MostUndone

// ExchangeAll makes those requests that are not done yet, in their order and several at a time, and notes in done which
// have succeeded. After one that fails it begins no other. The error is that of the request at.
func (l *Line) ExchangeAll(ctx context.Context, calls []Call, done []bool) (at int, err error) {
	if err := l.collect(ctx, 0); err != nil {
		return 0, err
	}
	next, waits := 0, map[uint64]int{}
	at = -1
	fail := func(i int, why error) {
		if at < 0 {
			at, err = i, why
		}
	}
	for {
		for ; at < 0 && next < len(calls) && len(waits) < MostAtOnce && l.owed <= mostAbandoned-calls[next].room(); next++ {
			if done[next] {
				continue
			}
			if why := l.Send(calls[next]); why != nil {
				fail(next, why)
				break
			}
			i, r := next, calls[next]
			request := l.request
			r.over = func(why error) {
				delete(waits, request)
				if done[i] = why == nil; why != nil {
					fail(i, why)
				}
			}
			waits[request] = i
			l.owe(request, r)
		}
		if l.Socket == nil || len(waits) == 0 && (at >= 0 || next == len(calls)) {
			return max(at, 0), err
		}
		_, ended, why := l.next(ctx, Call{})
		if ended {
			l.leave(waits)
		}
		if why != nil {
			first := next
			for _, i := range waits {
				first = min(first, i)
			}
			fail(first, why)
			return at, err
		}
	}
}

// leave has the server undo requests whose replies nobody waits for any more.
func (l *Line) leave(waits map[uint64]int) {
	for request := range waits {
		r := l.abandoned[request]
		r.over = nil
		//mutate:replace what several requests have led to is not undone
		//mutate:with l.Undo(request) => false
		r.told = r.Undo != nil && l.Undo(request)
		l.abandoned[request] = r
	}
}
