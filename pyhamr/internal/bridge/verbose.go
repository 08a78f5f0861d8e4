package bridge

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
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

func (j *journal) take() []string {
	j.mutex.Lock()
	lines, dropped := j.lines, j.dropped
	j.lines, j.dropped = nil, 0
	j.mutex.Unlock()
	if dropped > 0 {
		lines = append(lines, fmt.Sprintf("%d more lines were lost", dropped))
	}
	return lines
}

// SetVerbose makes every allocation, free, copy and handle a line: 0 none, 1 on standard error, 2 kept for TakeLog.
func SetVerbose(level int) (err error) {
	defer Guard(&err)
	switch {
	case level <= 0:
		Runtime.SetTrace(nil)
	case level == 1:
		Runtime.SetTrace(writeLine)
	default:
		Runtime.SetTrace(waiting.add)
	}
	return nil
}

// patience is how long a line may take to be written, also on a machine that is busy. Whoever reads standard error may
// need the lock that our caller holds, so the caller must not wait for ever.
const patience = time.Second

type writing struct {
	line string
	done chan struct{}
}

var (
	errorLines = sync.OnceValue(startWriter)
	stuck      atomic.Bool // a line is not read: later ones are lost until it is
)

func startWriter() chan<- writing {
	lines := make(chan writing)
	go func() {
		for w := range lines {
			fmt.Fprintln(os.Stderr, "hamr: "+w.line)
			stuck.Store(false)
			close(w.done)
		}
	}()
	return lines
}

// writeLine returns when the line is written, or when nobody reads it.
func writeLine(line string) {
	if stuck.Load() {
		return
	}
	w := writing{line, make(chan struct{})}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case errorLines() <- w:
	case <-late.C:
		return
	}
	select {
	case <-w.done:
	case <-late.C:
		stuck.Store(true)
		select {
		case <-w.done: // just in time: nobody else will say so
			stuck.Store(false)
		default:
		}
	}
}

// TakeLog returns the lines kept since the last call.
func TakeLog() (rows Rows, err error) {
	defer Guard(&err)
	for _, line := range waiting.take() {
		rows = append(rows, []any{line})
	}
	return rows, nil
}
