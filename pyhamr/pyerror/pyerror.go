// Package pyerror is how the functions that gopy generates raise Python exceptions.
package pyerror

import "hamr/pyhamr/internal/cabi"

// Raise makes the Python exception of err, with its attributes, and reports whether it
// has: before Python's extension is connected nobody can. Python's lock is held.
func Raise(err error) bool { return cabi.Raise(err) }
