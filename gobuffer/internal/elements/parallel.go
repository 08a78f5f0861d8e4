package elements

import (
	"runtime"
	"sync"
)

const (
	parallelBytes = 4 << 20
	maxWorkers    = 8
)

// workersFor gives how many goroutines an output of so many bytes is worth. At
// least 1 MiB each, else starting them shows.
func workersFor(bytes int) int {
	if bytes < parallelBytes {
		return 1
	}
	return min(runtime.GOMAXPROCS(0), maxWorkers, bytes>>20)
}

// inParallel cuts 0…n into one part for each goroutine and returns when all parts are done.
func inParallel(n, bytes int, part func(from, to int)) {
	workers := min(workersFor(bytes), n)
	if workers <= 1 {
		part(0, n)
		return
	}
	// Parts that are multiples of 64 keep aligned data aligned to cache lines.
	step := (n + workers - 1) / workers
	if step > 1024 {
		step = (step + 63) &^ 63
	}
	var wait sync.WaitGroup
	for from := step; from < n; from += step {
		wait.Go(func() { part(from, min(from+step, n)) })
	}
	part(0, min(step, n))
	wait.Wait()
}
