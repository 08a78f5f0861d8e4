package pyhamr

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// TuneStaging chooses how such copies are made until the process ends, up to the device or down: from how many bytes on
// they are staged (zero is no choice, and less never), and by how many threads beside the caller's.
func TuneStaging(backend string, device int, up bool, start, threads int) (int, error) {
	return 0, bridge.TuneStaging(backend, device, up, backends.StagingChoice{From: start, Threads: threads})
}
