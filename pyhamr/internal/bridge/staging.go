package bridge

import (
	"fmt"

	"hamr/backends"
	"hamr/gobuffer"
)

// StagingReport returns what decides about copies between a device and ordinary host memory: a name, a value and where
// that comes from.
func StagingReport(backend string, device int) (Rows, error) {
	return with(backend, device, func(s backends.Stager, device int) (rows Rows, err error) {
		for _, f := range s.Staging().Report(device) {
			rows = append(rows, []any{f.Name, f.Value, f.Source})
		}
		return rows, nil
	})
}

// TuneStaging chooses how such copies are made in a direction until the process ends.
func TuneStaging(backend string, device int, up bool, choice backends.StagingChoice) error {
	if choice.Threads < 0 {
		return &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "threads", Value: fmt.Sprint(choice.Threads),
			Accepted: "a number from 0 on"}
	}
	return do(backend, device, func(s backends.Stager, device int) error {
		s.Staging().Tune(device, up, choice)
		return nil
	})
}
