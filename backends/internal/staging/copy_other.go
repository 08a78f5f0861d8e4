//go:build !amd64

package staging

import "runtime"

// relax lets others have the processor.
func relax() { runtime.Gosched() }

// copyAround is copy: how bytes go past the caches is known for x86 only.
func copyAround(to, from []byte) { copy(to, from) }
