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
// at a place of its own, without a lock.
type transfer struct {
	driver Driver
	host   Host
	up     bool
	around bool  // the processors' caches
	bounds []int // where the pieces begin, and where the last one ends
	pieces []piece

	begun   int      // pieces that a chunk was found for
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

type piece struct {
	chunk *Chunk // set before it is offered
	done  atomic.Bool
	ended bool // the caller's
}

// Upload copies host memory to the device. At return it has been read; the device's copies are enqueued.
// errors.ErrUnsupported says that nothing was begun, since no chunk is free. After any other error the device's bytes
// are unspecified, and the host's are not read.
func (e *Engine) Upload(d Driver, host []byte) error { return e.UploadFrom(d, Whole(host)) }

// UploadFrom is Upload for bytes that do not lie side by side.
func (e *Engine) UploadFrom(d Driver, host Host) error {
	return e.move(d, host, true, e.threads(d.Device(), host.Size(), true, false))
}

// Download copies from the device to host memory, which is complete at return. Errors are as
// Upload's; after one the host's bytes are unspecified, and not written any more.
func (e *Engine) Download(d Driver, host []byte) error {
	return e.move(d, Whole(host), false, e.threads(d.Device(), len(host), false, fresh(host)))
}

// DownloadTo is Download to places that do not lie side by side.
func (e *Engine) DownloadTo(d Driver, host Host) error {
	return e.move(d, host, false, e.threads(d.Device(), host.Size(), false, false))
}

func (e *Engine) move(d Driver, host Host, up bool, threads int) error {
	whole := host.Size()
	size := max(e.chunkSize(whole), host.least())
	workers := e.workers(whole/size, threads)
	small := 2 * workers
	if size < smallestCut && e.Chunk <= 0 {
		small = 0
	}
	bounds := host.cut(size, small, up)
	pieces := len(bounds) - 1
	ring, past := max(ringDown, 2*threads), whole >= around
	if up {
		ring, past = ringUp, whole < aroundUp
	}
	chunks, err := e.take(d, min(ring, pieces), size, whole)
	if err != nil {
		return err
	}
	t := &transfer{driver: d, host: host, up: up, around: past, bounds: bounds, pieces: make([]piece, pieces),
		spins: spinsAlone}
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
	//mutate:with t.ended < pieces => t.begun < pieces
	for err == nil && t.ended < pieces {
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

// length is that of a piece.
func (t *transfer) length(number int) int { return t.bounds[number+1] - t.bounds[number] }

// copyPieces is a worker.
func (t *transfer) copyPieces() {
	idle := pause{spins: t.spins}
	defer idle.end()
	for {
		number := t.claimed.Add(1) - 1
		if number >= int64(len(t.pieces)) {
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
	p := &t.pieces[number]
	if !t.stop.Load() {
		begin, n := t.bounds[number], t.length(number)
		chunk := p.chunk.bytes(n)
		t.host.each(begin, begin+n, func(bytes []byte, at int) {
			in := chunk[at-begin:][:len(bytes)]
			if t.up {
				t.move(in, bytes)
			} else {
				t.move(bytes, in)
			}
		})
	}
	p.done.Store(true)
}

func (t *transfer) move(to, from []byte) {
	if t.around {
		copyAround(to, from)
	} else {
		copy(to, from)
	}
}

// begin finds pieces for the chunks that are free: a worker fills them, or the device.
func (t *transfer) begin() error {
	for t.begun < len(t.pieces) && len(t.free) > 0 {
		c, number := t.free[0], t.begun
		if !t.up {
			if err := t.driver.Down(c, t.bounds[number], t.length(number)); err != nil {
				return err
			}
			c.pending = true
			t.flying = append(t.flying, c)
		}
		t.free = t.free[1:]
		t.pieces[number].chunk = c
		t.begun++
		if !t.up {
			return nil // what has come down meanwhile is offered
		}
		t.offered.Add(1)
	}
	return nil
}

// step goes on with a piece that a worker or the device has finished, or copies one.
func (t *transfer) step() error {
	idle := pause{spins: t.spins}
	defer idle.end()
	for {
		if number := t.copied(); number >= 0 {
			return t.follow(number)
		}
		if moved, err := t.land(); moved || err != nil {
			return err
		}
		if t.begun < len(t.pieces) && len(t.free) > 0 {
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
	return len(t.flying) > 0 && !(t.up && t.begun == len(t.pieces))
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

// copied returns a piece that is done and needs the caller's time, or less than zero.
func (t *transfer) copied() int {
	for offered := int(t.offered.Load()); t.first < offered && t.pieces[t.first].ended; {
		t.first++
	}
	for number := t.first; number < int(t.offered.Load()); number++ {
		if p := &t.pieces[number]; !p.ended && p.done.Load() {
			return number
		}
	}
	return -1
}

// follow goes on where a worker has ended.
func (t *transfer) follow(number int) error {
	p := &t.pieces[number]
	c := p.chunk
	if !t.up {
		t.free = append(t.free, c)
		p.ended = true
		t.ended++
		return nil
	}
	if err := t.driver.Up(c, t.bounds[number], t.length(number)); err != nil {
		return err
	}
	//mutate:remove a chunk is filled again while the device reads it
	c.pending = true
	//mutate:also replace
	//mutate:with t.flying = append(t.flying, c) => t.free = append(t.free, c)
	t.flying = append(t.flying, c)
	p.ended = true
	t.ended++
	return nil
}

// land goes on where the device has ended, and reports whether it has anywhere.
func (t *transfer) land() (bool, error) {
	if t.up && t.begun == len(t.pieces) {
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
				t.offered.Add(1)
			}
			return true, nil
		}
	}
	if len(t.earlier) == 0 || t.begun == len(t.pieces) {
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
	claimed := int(t.claimed.Swap(int64(len(t.pieces))))
	idle := pause{spins: t.spins}
	defer idle.end()
	for number := t.first; number < offered; number++ {
		p := &t.pieces[number]
		if p.ended {
			continue
		}
		//mutate:never host memory is still read or written after an error
		for number < claimed && !p.done.Load() { // somebody is in the middle of it
			idle.next()
		}
		chunks = append(chunks, p.chunk)
	}
	return chunks
}
