//go:build !amd64

package staging

import "runtime"

// relax yields the processor.
func relax() { runtime.Gosched() }

// copyAround is copy, since only x86 has a way around the caches here.
func copyAround(to, from []byte) { copy(to, from) }
