//go:build generated

// Package generated imports what the files that gopy writes import, so that go mod vendor, which
// heeds no build tag, takes it along.
package generated

import _ "github.com/go-python/gopy/gopyh" // in python/hamr/_gopy/pyhamr.go
