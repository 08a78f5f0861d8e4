package pyhamr

import "hamr/pyhamr/internal/bridge"

// EnterTag makes a name that of the memory which the calling thread makes, and returns a number for LeaveTag.
func EnterTag(name string) (int, error) { return bridge.EnterTag(name) }

// LeaveTag restores what the calling thread had before EnterTag.
func LeaveTag(before int) int {
	bridge.LeaveTag(before)
	return 0
}

// Pause gives back the devices' memory of a name. keep is "nothing", "host" or "disk", folder that of the file or "".
//
//hamr:blocking
func Pause(name, keep, folder string) (int, error) { return 0, bridge.Pause(name, keep, folder) }

// Resume takes that memory again.
//
//hamr:blocking
func Resume(name string) (int, error) { return 0, bridge.Resume(name) }
