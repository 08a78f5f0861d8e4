package staging

import (
	"runtime"
	"sync/atomic"

	"hamr/backends"
)

// transfer is one call of Upload or Download. The goroutine that began it makes the driver's calls, and copies bytes
// between them. The workers only copy bytes. Nobody sleeps while there is work, since to wake a thread takes longer
// than to copy a chunk.
//
// Pieces are offered to the workers in order. A worker that claims a piece waits until it is offered. So each looks
// at a place of its own, without a lock. Some pieces that follow each other have one chunk, for which the driver is
// called once.
type transfer struct {
	driver Driver
	host   Host
	up     bool
	around bool  // the processors' caches
	bounds []int // where the pieces begin, and where the last one ends
	fold   int   // how many pieces a chunk has, save the last one
	loads  []load

	begun   int      // loads that a chunk was found for
	ended   int      // and those that need no more of the caller's time
	first   int      // that needs some
	free    []*Chunk // to be used
	earlier []*Chunk // those that earlier transfers' copies may still use
	flying  []*Chunk // those that the device copies, the oldest first

	claimed atomic.Int64 // pieces, by those who copy bytes
	offered atomic.Int64 // to them
	stop    atomic.Bool

	spins int // of everybody's pauses
}

// load is the pieces of a chunk.
type load struct {
	chunk  *Chunk // set before they are offered
	copied atomic.Int32
	ended  bool // the caller's
}

// Upload copies host memory to the device. At return it has been read; the device's copies are enqueued.
// errors.ErrUnsupported says that nothing was begun, since no chunk is free. After any other error the device's bytes
// are unspecified, and the host's are not read.
func (e *Engine) Upload(d Driver, host []byte) error { return e.UploadFrom(d, Whole(host)) }

// UploadFrom is Upload for bytes that do not lie side by side.
func (e *Engine) UploadFrom(d Driver, host Host) error {
	return e.move(d, host, true, false)
}

// Download copies from the device to host memory, which is complete at return. Errors are as
// Upload's; after one the host's bytes are unspecified, and not written any more.
func (e *Engine) Download(d Driver, host []byte) error {
	return e.move(d, Whole(host), false, fresh(host))
}

// DownloadTo is Download to places that do not lie side by side.
func (e *Engine) DownloadTo(d Driver, host Host) error {
	return e.move(d, host, false, false)
}

func (e *Engine) move(d Driver, host Host, up, isFresh bool) error {
	whole := host.Size()
	threads := e.threads(d.Device(), whole, up, isFresh)
	size := max(e.chunkSize(whole), host.least())
	fold := min(e.fold(whole), size)
	workers := e.workers(whole/size*fold, threads)
	small := 2 * workers
	if size < smallestCut && e.Chunk <= 0 {
		small = 0
	}
	bounds := host.cut(size, fold, small, up)
	loads := (len(bounds) - 2 + fold) / fold
	ring, past := max(ringDown, 2*threads), whole >= around
	if up {
		ring, past = ringUp, whole < aroundUp
	}
	chunks, err := e.take(d, min(ring, loads), size, whole)
	if err != nil {
		return err
	}
	t := &transfer{driver: d, host: host, up: up, around: past, bounds: bounds, fold: fold,
		loads: make([]load, loads), spins: spinsAlone}
	if runtime.GOMAXPROCS(0) > workers {
		t.spins = spins
	}
	for _, c := range chunks {
		//mutate:never a copy does not wait for the chunks of the one before
		if c.pending {
			t.earlier = append(t.earlier, c)
		} else {
			t.free = append(t.free, c)
		}
	}
	e.crew.send(t, workers)
	//mutate:replace a copy ends before its last pieces are there
	//mutate:with t.ended < loads => t.begun < loads
	for err == nil && t.ended < loads {
		if err = t.stopped(); err != nil {
			break
		}
		if err = t.begin(); err == nil {
			err = t.step()
		}
	}
	e.giveBack(t.end())
	return err
}

// pieces is how many there are.
func (t *transfer) pieces() int { return len(t.bounds) - 1 }

// of returns which pieces a load has: from the first one on and before the second one.
func (t *transfer) of(load int) (first, end int) {
	return load * t.fold, min((load+1)*t.fold, t.pieces())
}

// span is where a load begins, and its length.
func (t *transfer) span(load int) (begin, length int) {
	first, end := t.of(load)
	return t.bounds[first], t.bounds[end] - t.bounds[first]
}

// copyPieces is a worker.
func (t *transfer) copyPieces() {
	idle := pause{spins: t.spins}
	defer idle.end()
	for {
		number := t.claimed.Add(1) - 1
		if number >= int64(t.pieces()) {
			return
		}
		for {
			stopped := t.stop.Load() // first: nothing is offered after it
			//mutate:always a piece is copied before it is offered
			if t.offered.Load() > number {
				break
			}
			if stopped {
				return
			}
			idle.next()
		}
		idle.end()
		t.copy(int(number))
	}
}

// copy copies a piece that was offered and claimed.
func (t *transfer) copy(number int) {
	l := &t.loads[number/t.fold]
	if !t.stop.Load() {
		begin, n := t.span(number / t.fold)
		chunk := l.chunk.bytes(n)
		t.host.each(t.bounds[number], t.bounds[number+1], func(bytes []byte, at int) {
			in := chunk[at-begin:][:len(bytes)]
			if t.up {
				t.move(in, bytes)
			} else {
				t.move(bytes, in)
			}
		})
	}
	l.copied.Add(1)
}

// complete reports whether all pieces of a load are copied.
func (t *transfer) complete(load int) bool {
	first, end := t.of(load)
	return int(t.loads[load].copied.Load()) == end-first
}

// offer offers the pieces of the next load.
func (t *transfer) offer() {
	offered := int(t.offered.Load())
	_, end := t.of(offered / t.fold)
	t.offered.Store(int64(end))
}

func (t *transfer) move(to, from []byte) {
	if t.around {
		copyAround(to, from)
	} else {
		copy(to, from)
	}
}

// begin finds loads for the chunks that are free: workers fill them, or the device.
func (t *transfer) begin() error {
	for t.begun < len(t.loads) && len(t.free) > 0 {
		c, load := t.free[0], t.begun
		if !t.up {
			begin, n := t.span(load)
			if err := t.driver.Down(c, begin, n); err != nil {
				return err
			}
			c.pending = true
			t.flying = append(t.flying, c)
		}
		t.free = t.free[1:]
		t.loads[load].chunk = c
		t.begun++
		if !t.up {
			return nil // what has come down meanwhile is offered
		}
		t.offer()
	}
	return nil
}

// step goes on with a load that workers or the device have finished, or copies a piece.
func (t *transfer) step() error {
	idle := pause{spins: t.spins}
	defer idle.end()
	for {
		if load := t.copied(); load >= 0 {
			return t.follow(load)
		}
		if moved, err := t.land(); moved || err != nil {
			return err
		}
		if t.begun < len(t.loads) && len(t.free) > 0 {
			return nil
		}
		if err := t.stopped(); err != nil {
			return err
		}
		if t.speaks() || !t.help() {
			idle.next()
		}
	}
}

func (t *transfer) stopped() error {
	//mutate:never a staged transfer does not end when it is asked to
	if t.driver.Stopped() {
		return backends.ErrStopped
	}
	return nil
}

// speaks reports whether the device is about to need a call, for which the copy of a piece takes too long.
func (t *transfer) speaks() bool {
	return len(t.flying) > 0 && !(t.begun == len(t.loads) && (t.up || t.fold > 1))
}

// help copies a piece, if there is one that nobody has claimed.
func (t *transfer) help() bool {
	number := t.claimed.Load()
	if number >= t.offered.Load() || !t.claimed.CompareAndSwap(number, number+1) {
		return false
	}
	t.copy(int(number))
	return true
}

// copied returns a load that is done and needs the caller's time, or less than zero.
func (t *transfer) copied() int {
	offered := int(t.offered.Load())
	for t.first*t.fold < offered && t.loads[t.first].ended {
		t.first++
	}
	for load := t.first; load*t.fold < offered; load++ {
		if !t.loads[load].ended && t.complete(load) {
			return load
		}
	}
	return -1
}

// follow goes on where workers have ended.
func (t *transfer) follow(number int) error {
	l := &t.loads[number]
	c := l.chunk
	if !t.up {
		t.free = append(t.free, c)
		l.ended = true
		t.ended++
		return nil
	}
	begin, n := t.span(number)
	if err := t.driver.Up(c, begin, n); err != nil {
		return err
	}
	//mutate:remove a chunk is filled again while the device reads it
	c.pending = true
	//mutate:also replace
	//mutate:with t.flying = append(t.flying, c) => t.free = append(t.free, c)
	t.flying = append(t.flying, c)
	l.ended = true
	t.ended++
	return nil
}

// land goes on where the device has ended, and reports whether it has anywhere.
func (t *transfer) land() (bool, error) {
	if t.up && t.begun == len(t.loads) {
		return false, nil // no more chunks are needed
	}
	if len(t.flying) > 0 {
		c := t.flying[0]
		over, err := t.driver.Done(c)
		if err != nil {
			return false, err
		}
		//mutate:always a piece is taken for copied before the device has done it
		if over {
			t.flying = t.flying[1:]
			c.pending = false
			if t.up {
				t.free = append(t.free, c)
			} else {
				t.offer()
			}
			return true, nil
		}
	}
	if len(t.earlier) == 0 || t.begun == len(t.loads) {
		return false, nil
	}
	// Another stream may keep one of them for long: each is asked in turn.
	c := t.earlier[0]
	//mutate:replace a stream that stands still keeps other streams' transfers waiting
	//mutate:with t.earlier = append(t.earlier[1:], c) => t.earlier[0] = c
	t.earlier = append(t.earlier[1:], c)
	over, err := t.driver.Done(c)
	//mutate:replace a stopped transfer's chunks are taken for free
	//mutate:with !over => !over && false
	if !over || err != nil {
		return false, err
	}
	t.earlier = t.earlier[:len(t.earlier)-1]
	c.pending = false
	t.free = append(t.free, c)
	return true, nil
}

// end releases the workers and returns the chunks. The device may still use some of them after an error, or after an
// upload. These are pending.
func (t *transfer) end() []*Chunk {
	t.stop.Store(true)
	chunks := append(append(t.free, t.earlier...), t.flying...)
	offered := int(t.offered.Load())
	claimed := int(t.claimed.Swap(int64(t.pieces())))
	idle := pause{spins: t.spins}
	defer idle.end()
	for load := t.first; load*t.fold < offered; load++ {
		l := &t.loads[load]
		if l.ended {
			continue
		}
		first, end := t.of(load)
		taken := int32(max(min(claimed, end)-first, 0))
		//mutate:never host memory is still read or written after an error
		for l.copied.Load() < taken { // somebody is in the middle of it
			idle.next()
		}
		chunks = append(chunks, l.chunk)
	}
	return chunks
}
