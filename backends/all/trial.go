//go:build trial

package all

import (
	"hamr/backends"
	"hamr/backends/trial"
)

func init() {
	makers = append(makers, func(lookup func(string) string) backends.Backend { return trial.New(lookup) })
}
