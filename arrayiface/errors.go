package arrayiface

import (
	"fmt"
	"strconv"
	"strings"
)

// Error says which part of an array's description is wrong and why. Every error of this package is an *Error.
type Error struct {
	// Key is the offending entry, named as the protocol names it: "typestr", "shape", "strides", "data", "offset", "mask",
	// "version", "stream", "format", or "dtype", "index" and "slice" for what is no protocol's.
	Key string
	// Value is the offending value as Python prints it, empty if there is none.
	Value string
	// Problem says what is wrong with it, and what would be accepted.
	Problem string
	// Type is true for what is Python's TypeError, false for a ValueError.
	Type bool
}

// Error reads like "typestr '>f8': big-endian elements are not supported; …".
func (e *Error) Error() string {
	if e.Value == "" {
		return e.Key + ": " + e.Problem
	}
	return e.Key + " " + e.Value + ": " + e.Problem
}

func typeError(key, value, problem string, args ...any) error {
	return &Error{Key: key, Value: value, Problem: fmt.Sprintf(problem, args...), Type: true}
}

func valueError(key, value, problem string, args ...any) error {
	return &Error{Key: key, Value: value, Problem: fmt.Sprintf(problem, args...)}
}

// maxQuoted keeps a hostile or mistaken value from flooding the message.
const maxQuoted = 48

// quote prints s in ASCII, so that no message carries a NUL or a broken character through C strings into Python.
func quote(s string) string {
	if len(s) > maxQuoted {
		s = s[:maxQuoted] + "..."
	}
	q := strconv.QuoteToASCII(s)
	return "'" + q[1:len(q)-1] + "'"
}

// tuple prints values as a Python tuple.
func tuple(values []int) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		if i > MaxDimensions {
			b.WriteString("...")
			break
		}
		b.WriteString(strconv.Itoa(v))
	}
	if len(values) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return b.String()
}

func address(a uintptr) string {
	return "0x" + strconv.FormatUint(uint64(a), 16)
}
