package gobuffer_test

import (
	"fmt"
	"strings"
	"testing"

	"hamr/backends/backendtest"
)

// TestModelWithEachSingleFault repeats short walks, each time with another one of the
// calls failing that hamr makes: of every kind the first, the second and so on. What
// fails leaves everything as it was and in order, or waits instead and succeeds; no
// memory is given back under work on it, and none is lost.
func TestModelWithEachSingleFault(t *testing.T) {
	modes := map[string]modelOptions{
		"manual":            modelModes["manual"],
		"frees do not wait": modelModes["frees do not wait"],
		"no kernels":        {FakeOptions: backendtest.FakeOptions{Manual: true, Strict: true, NoConvert: true}},
		"mapped":            modelModes["mapped"],
	}
	for _, name := range tried() {
		modes[name] = modelModes[name]
	}
	for name, o := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := map[string]bool{}
			for i := range *modelFaultRuns {
				seed := uint64(i + 1)
				if *modelSeed != 0 {
					seed = *modelSeed + uint64(i)
				}
				c, walk := plan(o, seed, faultSteps)
				for runtime := range 2 {
					for _, kind := range faultKinds {
						for nth := 1; ; nth++ {
							fails := func(walk []step) (found *finding, struck bool) {
								o := o
								o.single = &singleFault{runtime: runtime, kind: kind, nth: nth}
								return try(t, o, c, walk), o.single.struck
							}
							found, struck := fails(walk)
							if found != nil && !seen[found.class] {
								seen[found.class] = true
								short := shorten(func(walk []step) *finding { f, _ := fails(walk); return f }, walk, found)
								t.Errorf("%s\nThe shortest walk that fails so, of seed %d, with call %d of %s:\n%s",
									strings.Join(short.messages, "\n"),
									seed, nth, fmt.Sprint(kind, " of runtime ", runtime), strings.Join(short.log, "\n"))
							}
							if !struck {
								break
							}
						}
					}
				}
			}
		})
	}
}

const faultSteps = 25
