package bridge

import (
	"fmt"

	"hamr/backends"
	"hamr/gobuffer"
)

// StagingReport returns what decides about copies between a device and ordinary host memory.
func StagingReport(backend string, device int) ([]backends.StagingFact, error) {
	return with(backend, device, func(s backends.Stager, device int) ([]backends.StagingFact, error) {
		return s.Staging().Report(device), nil
	})
}

// TuneStaging chooses how such copies are made in a direction until the process ends.
func TuneStaging(backend string, device int, up bool, choice backends.StagingChoice) error {
	if choice.Threads < 0 {
		return &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "threads", Value: fmt.Sprint(choice.Threads), Accepted: "a number from 0 on"}
	}
	return do(backend, device, func(s backends.Stager, device int) error {
		s.Staging().Tune(device, up, choice)
		return nil
	})
}
