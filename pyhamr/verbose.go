package pyhamr

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"hamr/pyhamr/internal/bridge"
)

// mostLines bounds what waits to be taken by Python's logging.
const mostLines = 100_000

// journal keeps trace lines until Python takes them. Safe for concurrent use.
type journal struct {
	mutex   sync.Mutex
	lines   []string
	dropped int
}

var waiting journal

func (j *journal) add(line string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if len(j.lines) == mostLines {
		j.dropped++
		return
	}
	j.lines = append(j.lines, line)
}

func (j *journal) take() string {
	j.mutex.Lock()
	lines, dropped := j.lines, j.dropped
	j.lines, j.dropped = nil, 0
	j.mutex.Unlock()
	if dropped > 0 {
		lines = append(lines, fmt.Sprintf("%d more lines were lost", dropped))
	}
	return strings.Join(lines, "\n")
}

// SetVerbose makes every allocation, free, copy and handle a line: 0 none, 1 on
// standard error, 2 kept for TakeLog.
func SetVerbose(level int) (int, error) {
	return run(func() error {
		switch {
		case level <= 0:
			bridge.Runtime.SetTrace(nil)
		case level == 1:
			bridge.Runtime.SetTrace(func(line string) { fmt.Fprintln(os.Stderr, "hamr: "+line) })
		default:
			bridge.Runtime.SetTrace(waiting.add)
		}
		return nil
	})
}

// TakeLog returns the lines kept since the last call.
func TakeLog() string { return waiting.take() }
