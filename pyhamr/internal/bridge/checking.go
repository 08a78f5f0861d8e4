package bridge

import (
	"errors"
	"fmt"
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
func CheckMemory() (text string, err error) {
	defer Guard(&err)
	DropSpares()
	c, err := checker()
	if err != nil {
		return "", err
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

// FoundMisuse describes what was found since the last call, in lines: library, allocator, device, address, bytes,
// stream, offset, bytes written to, the first one's value, and thread, nanoseconds since 1970 and stack, of the
// allocation, of the release, of the second one, of work that was enqueued with its stream and backends.Writes, and of
// work before that; behind tabs the names of both. What is not there is zeros. The last line is how many more there were.
func FoundMisuse() (text string, err error) {
	defer Guard(&err)
	c, err := checker()
	if err != nil {
		return "", err
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

func misuses(found []gobuffer.Misuse, more int) string {
	var text strings.Builder
	for _, m := range found {
		fmt.Fprint(&text, m.Library, " ", int(m.Region.Allocator), " ", m.Region.Device, " ", uint64(m.Region.Address), " ", m.Size, " ",
			uint64(m.Stream), " ", m.Offset, " ", m.Bytes, " ", m.Value, moment(m.Allocated), moment(m.Freed), moment(m.Again))
		name := usage(&text, m.Used)
		earlier := usage(&text, m.Earlier)
		fmt.Fprint(&text, "\t", name, "\t", earlier, "\n")
	}
	fmt.Fprintln(&text, more)
	return text.String()
}

func moment(m gobuffer.Moment) string { return fmt.Sprint(" ", m.Thread, " ", m.Time, " ", m.Stack) }

// usage writes what is known of work, or zeros, and returns its name.
func usage(to *strings.Builder, u *gobuffer.Usage) (name string) {
	if u == nil {
		u = &gobuffer.Usage{}
	}
	fmt.Fprint(to, moment(u.Moment), " ", uint64(u.Stream), " ", int(u.Writes))
	return u.Name
}

// ObservedByChecking says of each backend whether its work is looked at: lines of its name and "", or behind a space why not.
func ObservedByChecking() (text string, err error) {
	defer Guard(&err)
	c, err := checker()
	if err != nil {
		return "", err
	}
	var lines []string
	for name, why := range c.Observed() {
		line := name
		if why != nil {
			line += " " + strings.ReplaceAll(why.Error(), "\n", " ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

// StopChecking ends the check, and describes what it found.
func StopChecking() (text string, err error) {
	defer Guard(&err)
	checking.mutex.Lock()
	c := checking.checker
	checking.checker = nil
	checking.mutex.Unlock()
	if c == nil {
		return "", errNotChecked
	}
	defer stacksAsked.wake()
	return misuses(c.Stop()), nil
}
