package bridge

import (
	"encoding/binary"
	"strings"
	"sync"
	"syscall"

	"hamr/backends"
	"hamr/hetero"
)

// TakeCachedStream returns a stream of a device on which nothing is pending.
func TakeCachedStream(backend string, device int) (s backends.Stream, err error) {
	defer Guard(&err)
	s, err = Scheduler.TakeStream(hetero.Place{Backend: backend, Device: device})
	announceDevices()
	return s, err
}

// GiveCachedStream gives one back, which may still have work.
func GiveCachedStream(backend string, device int, s backends.Stream) (err error) {
	defer Guard(&err)
	return Scheduler.GiveStream(hetero.Place{Backend: backend, Device: device}, s)
}

// RecordCachedEvent returns an event that stands for the work on a stream so far.
func RecordCachedEvent(backend string, device int, s backends.Stream) (e backends.Event, err error) {
	defer Guard(&err)
	return Scheduler.Record(hetero.Place{Backend: backend, Device: device}, s)
}

// GiveCachedEvent gives one back, which may be pending. made is how many events the caller has made of
// itself since it last said so; then e may be zero.
func GiveCachedEvent(backend string, device int, e backends.Event, made int) (err error) {
	defer Guard(&err)
	p, err := counted(backend, device, made)
	if err != nil || e == 0 {
		return err
	}
	return Scheduler.GiveEvent(p, e)
}

// DropCachedEvent gives an event back whose work has failed, which the caller was told.
func DropCachedEvent(backend string, device int, e backends.Event, made int) (err error) {
	defer Guard(&err)
	p, err := counted(backend, device, made)
	if err != nil {
		return err
	}
	return Scheduler.DropEvent(p, e)
}

// counted is a place whose events have been counted that the caller has made.
func counted(backend string, device, made int) (p hetero.Place, err error) {
	p = hetero.Place{Backend: backend, Device: device}
	if made > 0 {
		err = Scheduler.AdoptEvents(p, made)
	}
	return p, err
}

// WaitForEvent makes later work on a stream wait for an event of one of the backend's devices, and
// reports whether it does.
func WaitForEvent(backend string, device int, s backends.Stream, eventDevice int,
	e backends.Event) (waits bool, err error) {
	defer Guard(&err)
	if eventDevice != device {
		return true, StreamWaitEvent(backend, device, s, e)
	}
	return Scheduler.WaitFor(hetero.Place{Backend: backend, Device: device}, s, e)
}

// Accelerators returns the devices that work may run on, as restricted by a list with commas between, or by
// HAMR_ACCELERATORS where that is empty. distinct leaves out those that another runtime before them shows, too.
func Accelerators(among string, distinct bool) (rows Rows, err error) {
	defer Guard(&err)
	places, err := Scheduler.Accelerators(restriction(among)...)
	if distinct {
		places = Scheduler.Distinct(places)
	}
	for _, p := range places {
		rows = append(rows, []any{p.String()})
	}
	return rows, err
}

func restriction(among string) []string {
	if among == "" {
		return nil
	}
	return strings.Split(among, ",")
}

// FirstAlternative is hetero.Scheduler.FirstOf of names with commas between.
func FirstAlternative(names, among string) (name string, err error) {
	defer Guard(&err)
	return Scheduler.FirstOf(strings.Split(names, ","), restriction(among)...)
}

// watched is what Python waits for, by ticket, and the tickets that are to be taken, by descriptor.
var watched struct {
	sync.Mutex
	last uint64
	ends map[uint64]func()
	over map[int][]uint64
}

// WatchEvent has an eventfd written to when an event is done, or cannot be asked any more: then TakeWatched of the
// descriptor returns the ticket, unless Unwatch was told that. The caller keeps event and descriptor until then.
func WatchEvent(backend string, device int, e backends.Event, descriptor int) (ticket uint64, err error) {
	defer Guard(&err)
	w := &watched
	w.Lock()
	defer w.Unlock()
	if w.ends == nil {
		w.ends, w.over = map[uint64]func(){}, map[int][]uint64{}
	}
	w.last++
	ticket = w.last
	watch, err := Scheduler.Watch(hetero.Place{Backend: backend, Device: device}, e,
		func(error) { told(ticket, descriptor) })
	if err != nil {
		return 0, err
	}
	w.ends[ticket] = func() { Scheduler.Unwatch(watch) }
	return ticket, nil
}

// told writes under the lock: after Unwatch the descriptor may be somebody else's.
func told(ticket uint64, descriptor int) {
	w := &watched
	w.Lock()
	defer w.Unlock()
	if w.ends[ticket] == nil {
		return
	}
	delete(w.ends, ticket)
	first := len(w.over[descriptor]) == 0
	w.over[descriptor] = append(w.over[descriptor], ticket)
	if first {
		_, _ = syscall.Write(descriptor, binary.NativeEndian.AppendUint64(nil, 1))
	}
}

// TakeWatched returns a ticket of WatchEvent's that is over, 0 if there is none.
func TakeWatched(descriptor int) (ticket uint64) {
	w := &watched
	w.Lock()
	defer w.Unlock()
	tickets := w.over[descriptor]
	if len(tickets) == 0 {
		delete(w.over, descriptor)
		return 0
	}
	w.over[descriptor] = tickets[1:]
	return tickets[0]
}

// Unwatch ends a watch. Nothing is written for it any more.
func Unwatch(ticket uint64) {
	w := &watched
	w.Lock()
	end := w.ends[ticket]
	delete(w.ends, ticket)
	for descriptor, tickets := range w.over {
		for i, other := range tickets {
			if other == ticket {
				w.over[descriptor] = append(tickets[:i:i], tickets[i+1:]...)
			}
		}
	}
	w.Unlock()
	if end != nil {
		end()
	}
}

// CachedPlaces returns for each device whose streams or events were used its name and then of its streams, and of its
// events, how many were made, are kept, are handed out, and how often one that was kept was handed out.
func CachedPlaces() (rows Rows, err error) {
	defer Guard(&err)
	for _, c := range Scheduler.CacheStatistics() {
		row := []any{c.Place.String()}
		for _, n := range []hetero.CacheCounts{c.Streams, c.Events} {
			row = append(row, n.Made-n.Destroyed, n.Kept, n.Out, n.Hits)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
