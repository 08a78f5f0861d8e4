// Package setting reads numbers that environment variables hold.
package setting

import (
	"fmt"
	"math"
	"strconv"
)

// Number returns the number that a variable holds, and whether it holds anything: lookup returns ""
// for one that is not set. The error names a value that is no number from least to most; what says
// which is needed, as "a number of bytes".
func Number(lookup func(string) string, name, what string, least, most uint64) (n uint64, set bool, err error) {
	text := lookup(name)
	if text == "" {
		return 0, false, nil
	}
	n, err = strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, true, fmt.Errorf("%s is %q: %s is needed", name, text, what)
	}
	return n, true, nil
}

// Bytes is Number for sizes, of at least so many bytes; what is not set is otherwise.
func Bytes(lookup func(string) string, name string, least uint64, otherwise int) (int, error) {
	n, set, err := Number(lookup, name, "a number of bytes", least, math.MaxInt)
	if err != nil || !set {
		return otherwise, err
	}
	return int(n), nil
}
