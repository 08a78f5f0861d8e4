package staging

import (
	"runtime"
	"strconv"

	"hamr/backends"
)

// Where a setting comes from.
const (
	byDefault     = "default"
	byEnvironment = "environment"
	byTuning      = "tuning"
	byMeasuring   = "measuring"
)

var _ backends.Staging = (*Engine)(nil)

// Report implements backends.Staging.
func (e *Engine) Report(device int) []backends.StagingFact {
	t := e.tuningOf(device)
	tuned := byTuning
	if t.measured {
		tuned = byMeasuring
	}
	source := func(chosen, found bool) string {
		switch {
		case chosen:
			return byEnvironment
		case found:
			return tuned
		}
		return byDefault
	}
	var facts []backends.StagingFact
	add := func(name, value, source string) {
		facts = append(facts, backends.StagingFact{Name: name, Value: value, Source: source})
	}
	for _, d := range []struct {
		name string
		up   bool
		backends.StagingChoice
	}{{"up", true, t.up}, {"down", false, t.down}} {
		add("from_"+d.name, e.fromText(device, d.up), source(e.Chunk > 0 || e.off(), d.From != 0))
		add("threads_"+d.name, strconv.Itoa(e.threadsInForce(device, d.up, false)),
			source(e.off() || e.Threads != 0, d.Threads != 0))
	}
	add("threads_fresh", strconv.Itoa(e.threadsInForce(device, false, true)),
		source(e.off() || e.Threads != 0, t.down.Threads > mostFresh))
	add("chunk", orWords(e.Chunk, "by size"), source(e.Chunk != 0, false))
	add("pinned_limit", strconv.Itoa(max(e.limit(), 0)), source(e.Limit != 0, false))
	add("pinned_held", strconv.Itoa(e.Held()), "")
	add("processors", strconv.Itoa(runtime.GOMAXPROCS(0)), "")
	if t.machine.cpu != "" {
		add("cpu", t.machine.cpu, "")
		add("device", t.machine.model.Name, "")
		add("driver", t.machine.model.Driver, "")
	}
	state := t.state
	switch {
	case t.measured:
		state = byMeasuring
	case state == "":
		state = "in force"
	}
	add("tuning", t.file, state)
	return facts
}

// fromText is the size of the smallest copy that is staged.
func (e *Engine) fromText(device int, up bool) string {
	from := e.choice(device, up).From
	switch {
	case e.off():
		from = -1
	case e.Chunk > 0:
		from = e.Chunk
	case from == 0 && e.several():
		from = smallest
	}
	if from <= 0 || !e.Serves(device, from, up) {
		return never
	}
	return strconv.Itoa(from)
}

// threadsInForce is for copies that have pieces for all.
func (e *Engine) threadsInForce(device int, up, isFresh bool) int {
	if e.off() {
		return 0
	}
	n := e.threads(device, largestChunk, up, isFresh)
	return e.workers(2*n+2, n)
}

// orWords is a number, or words where there is no choice.
func orWords(n int, words string) string {
	if n <= 0 {
		return words
	}
	return strconv.Itoa(n)
}
