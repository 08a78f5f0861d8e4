package pyhamr

import "hamr/pyhamr/internal/bridge"

// Settle ends what was let go of, of the store or opened, and has not ended.
//
//hamr:blocking
func Settle() int {
	bridge.Settle()
	return 0
}
