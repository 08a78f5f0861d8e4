package pyhamr

import (
	"strings"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// StagingReport returns what decides about copies between a device and ordinary host memory: lines
// of a name, a value and where that comes from, with tabs between.
//
//hamr:blocking
func StagingReport(backend string, device int) (string, error) {
	facts, err := bridge.StagingReport(backend, device)
	plain := strings.NewReplacer("\t", " ", "\n", " ")
	var lines strings.Builder
	for _, f := range facts {
		lines.WriteString(plain.Replace(f.Name) + "\t" + plain.Replace(f.Value) + "\t" + plain.Replace(f.Source) + "\n")
	}
	return lines.String(), err
}

// TuneStaging chooses how such copies are made until the process ends, up to the device or down:
// from how many bytes on they are staged (zero is no choice, and less never), and by how many threads
// beside the caller's.
func TuneStaging(backend string, device int, up bool, start, threads int) (int, error) {
	return 0, bridge.TuneStaging(backend, device, up, backends.StagingChoice{From: start, Threads: threads})
}
