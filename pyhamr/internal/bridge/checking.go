package bridge

import (
	"errors"
	"strings"
	"sync"

	"hamr/gobuffer"
)

// checking is the one check of this copy of the library.
var checking struct {
	mutex   sync.Mutex
	checker *gobuffer.Checker
}

var errNotChecked = errors.New("memory is not being checked")

// StartChecking keeps up to most bytes of freed memory, to see whether it is written to; stack returns the
// number of the calling thread's stack.
func StartChecking(most int64, stack func() int64) (err error) {
	defer Guard(&err)
	checking.mutex.Lock()
	defer checking.mutex.Unlock()
	started, err := Runtime.Check(most, stack)
	if err == nil {
		checking.checker = started
		started.AskStacks(stacksAsked.ask)
		DropSpares() // there are no others from now on
	}
	return err
}

// CheckMemory looks at all memory that is kept, and describes what FoundMisuse does.
func CheckMemory() (rows Rows, err error) {
	defer Guard(&err)
	DropSpares()
	c, err := checker()
	if err != nil {
		return nil, err
	}
	// What could not be released yet is kept from then on, or the device is out of reach.
	_ = Runtime.ReleasePostponed()
	return misuses(c.Look()), nil
}

// lookAtFreed gives back what is kept, where memory is checked; FoundMisuse tells what was found.
func lookAtFreed() {
	if c, err := checker(); err == nil {
		c.GiveBack()
	}
}

// FoundMisuse describes what was found since the last call, in rows: library, allocator, device, address, bytes,
// stream, offset, bytes written to, the first one's value, and thread, nanoseconds since 1970 and stack, of the
// allocation, of the release, of the second one, of work that was enqueued with its stream and backends.Writes, and of
// work before that; then the names of both. What is absent is zeros and "". The last row counts those left out.
func FoundMisuse() (rows Rows, err error) {
	defer Guard(&err)
	c, err := checker()
	if err != nil {
		return nil, err
	}
	return misuses(c.Found()), nil
}

func checker() (*gobuffer.Checker, error) {
	checking.mutex.Lock()
	defer checking.mutex.Unlock()
	if checking.checker == nil {
		return nil, errNotChecked
	}
	return checking.checker, nil
}

func misuses(found []gobuffer.Misuse, more int) (rows Rows) {
	for _, m := range found {
		used, earlier := orNone(m.Used), orNone(m.Earlier)
		row := []any{m.Library.String(), m.Region.Allocator, m.Region.Device, m.Region.Address, m.Size, m.Stream, m.Offset,
			m.Bytes, m.Value}
		for _, at := range []gobuffer.Moment{m.Allocated, m.Freed, m.Again} {
			row = append(row, at.Thread, at.Time, at.Stack)
		}
		for _, u := range []*gobuffer.Usage{used, earlier} {
			row = append(row, u.Moment.Thread, u.Moment.Time, u.Moment.Stack, u.Stream, u.Writes)
		}
		rows = append(rows, append(row, used.Name, earlier.Name))
	}
	return append(rows, []any{more})
}

func orNone(u *gobuffer.Usage) *gobuffer.Usage {
	if u == nil {
		return &gobuffer.Usage{}
	}
	return u
}

// ObservedByChecking says of each backend whether its work is looked at: its name and "", or why not.
func ObservedByChecking() (rows Rows, err error) {
	defer Guard(&err)
	c, err := checker()
	if err != nil {
		return nil, err
	}
	for name, why := range c.Observed() {
		text := ""
		if why != nil {
			text = strings.ReplaceAll(why.Error(), "\n", " ")
		}
		rows = append(rows, []any{name, text})
	}
	return rows, nil
}

// StopChecking ends the check, and describes what it found.
func StopChecking() (rows Rows, err error) {
	defer Guard(&err)
	checking.mutex.Lock()
	c := checking.checker
	checking.checker = nil
	checking.mutex.Unlock()
	if c == nil {
		return nil, errNotChecked
	}
	defer stacksAsked.wake()
	return misuses(c.Stop()), nil
}
