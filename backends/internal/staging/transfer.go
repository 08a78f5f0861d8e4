package staging

import (
	"math"
	"sync"
	"sync/atomic"

	"hamr/backends/waiting"
)

// transfer is one call of Upload or Download. The goroutine that began it speaks to the driver;
// the workers copy bytes and nothing else.
type transfer struct {
	driver Driver
	host   []byte
	up     bool
	size   int // of a piece; the last may be smaller
	pieces int

	begun   int      // pieces that a chunk was found for
	ended   int      // and those that need no more of the caller's time
	free    []*Chunk // to be used
	flying  []flight // what the device copies, the oldest first
	work    chan flight
	worked  chan flight
	working int // pieces between the two
	workers sync.WaitGroup
	stop    atomic.Bool
}

// flight is a piece in a chunk; the piece is negative where it is an earlier transfer's.
type flight struct {
	chunk *Chunk
	piece int
}

// Upload copies host memory to the device. At return it has been read; the device's copies are
// enqueued. errors.ErrUnsupported says that nothing was begun, since there are no chunks to be had.
// After any other error the device's bytes are unspecified, and the host's are not read.
func (e *Engine) Upload(d Driver, host []byte) error { return e.move(d, host, true) }

// Download copies from the device to host memory, which is complete at return. Errors are as
// Upload's; after one the host's bytes are unspecified, and not written any more.
func (e *Engine) Download(d Driver, host []byte) error { return e.move(d, host, false) }

func (e *Engine) move(d Driver, host []byte, up bool) error {
	size := e.chunkSize(len(host))
	pieces := (len(host) + size - 1) / size
	threads := min(max(e.threads(), 1), pieces)
	chunks, err := e.take(d, min(2*threads, pieces), size, len(host))
	if err != nil {
		return err
	}
	t := &transfer{driver: d, host: host, up: up, size: size, pieces: pieces,
		work: make(chan flight, len(chunks)), worked: make(chan flight, len(chunks))}
	for _, c := range chunks {
		if c.pending {
			t.flying = append(t.flying, flight{c, -1})
		} else {
			t.free = append(t.free, c)
		}
	}
	for range threads {
		t.workers.Go(t.copyPieces)
	}
	for err == nil && t.ended < t.pieces {
		if err = t.begin(); err == nil {
			err = t.step()
		}
	}
	e.giveBack(t.end(err))
	return err
}

func (t *transfer) part(piece int) []byte {
	return t.host[piece*t.size : min((piece+1)*t.size, len(t.host))]
}

func (t *transfer) copyPieces() {
	for f := range t.work {
		if !t.stop.Load() {
			part := t.part(f.piece)
			chunk := f.chunk.bytes(len(part))
			if t.up {
				copy(chunk, part)
			} else {
				copy(part, chunk)
			}
		}
		t.worked <- f
	}
}

// begin finds pieces for the chunks that are free: a worker fills them, or the device.
func (t *transfer) begin() error {
	for t.begun < t.pieces && len(t.free) > 0 {
		last := len(t.free) - 1
		f := flight{t.free[last], t.begun}
		if !t.up {
			if err := t.driver.Down(f.chunk, f.piece*t.size, len(t.part(f.piece))); err != nil {
				return err
			}
			f.chunk.pending = true
			t.flying = append(t.flying, f)
		}
		t.free = t.free[:last]
		t.begun++
		if t.up {
			t.hand(f)
		}
	}
	return nil
}

func (t *transfer) hand(f flight) {
	t.working++
	t.work <- f
}

// step goes on with a piece that a worker is done with, or that the device is done with.
func (t *transfer) step() error {
	// An upload that has begun its last piece needs no more chunks.
	if len(t.flying) == 0 || t.up && t.begun == t.pieces {
		return t.follow(<-t.worked)
	}
	var pauses waiting.Pauses
	defer pauses.End()
	for {
		select {
		case f := <-t.worked:
			return t.follow(f)
		default:
		}
		over, err := t.driver.Done(t.flying[0].chunk)
		if err != nil {
			return err
		}
		if over {
			t.land()
			return nil
		}
		pauses.Next(math.MaxInt64)
	}
}

// follow goes on where a worker has ended.
func (t *transfer) follow(f flight) error {
	t.working--
	if !t.up {
		t.free = append(t.free, f.chunk)
		t.ended++
		return nil
	}
	if err := t.driver.Up(f.chunk, f.piece*t.size, len(t.part(f.piece))); err != nil {
		t.free = append(t.free, f.chunk)
		return err
	}
	f.chunk.pending = true
	t.flying = append(t.flying, f)
	t.ended++
	return nil
}

// land goes on where the device has ended.
func (t *transfer) land() {
	f := t.flying[0]
	t.flying = t.flying[1:]
	f.chunk.pending = false
	if t.up || f.piece < 0 {
		t.free = append(t.free, f.chunk)
	} else {
		t.hand(f)
	}
}

// end has the workers go and returns the chunks. After an error the device may still use some,
// which are pending, as those of an upload are that went well.
func (t *transfer) end(failed error) []*Chunk {
	t.stop.Store(failed != nil)
	chunks := t.free
	for ; t.working > 0; t.working-- {
		f := <-t.worked
		chunks = append(chunks, f.chunk)
	}
	close(t.work)
	t.workers.Wait()
	for _, f := range t.flying {
		chunks = append(chunks, f.chunk)
	}
	return chunks
}
