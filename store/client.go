package store

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hamr/gobuffer"
	"hamr/internal/deadline"
	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Client is a session with a server: what it has leases of, it has until it lets go of it, is
// closed, or its process ends. Its methods may be called from any goroutine; one request is under
// way at a time, those that wait for others aside. A context ends a call, at the latest some 20 ms
// later; what the server does of it all the same is undone.
type Client struct {
	runtime *gobuffer.Runtime
	path    string
	turn    chan struct{} // held for a request
	hangUp  *atomic.Bool  // whether requests that are under way are to end
	timeout atomic.Int64  // in nanoseconds; none where it is 0
	session atomic.Uint64 // counts connections to servers

	// The holder of turn uses these.
	line    *asking.Line
	unwatch func() // ends what begin began
	book    int    // what the server wrote down, or -1
	books   []int  // what earlier servers did, of which it was not told

	mu        sync.Mutex
	held      map[ID]*held
	slabs     map[ID]*mapping
	releases  []release
	forgets   []ID
	aborts    []ID
	deletes   []ID // what was sealed when nobody waited for it any more
	unnamed   []ID // what goes unless it has a name
	replacing []ID // of late: see Replace
	flushing  bool
	joining   bool // a goroutine looks for a server
	closed    bool
	idle      []*asking.Line // for calls that wait
	watches   map[io.Closer]struct{}

	devices sync.Map // where devices' memory is mapped, by UUID
}

type release struct {
	id    ID
	times int
}

// isNone refuses a client that Connect has not returned.
func (c *Client) isNone() error {
	if c == nil || c.turn == nil {
		return &ArgumentError{Argument: "client", Value: "nil", Accepted: "what Connect returns"}
	}
	return nil
}

// limited is a context that ends with the client's timeout, too.
func (c *Client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if timeout := time.Duration(c.timeout.Load()); timeout > 0 {
		c := deadline.Until(ctx, time.Now().Add(timeout))
		return c, c.End
	}
	return ctx, func() {}
}

// take waits for the turn to send a request.
func (c *Client) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) give() { <-c.turn }

// encodeNotes appends what needs no answer, as much of it as goes with a request.
func (c *Client) encodeNotes(e *protocol.Encoder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := min(len(c.releases), 1500); n > 0 {
		wire.Crash("client-releasing")
		at := e.Begin(protocol.OpRelease, 0, 0)
		e.U32(uint32(n))
		for _, r := range c.releases[:n] {
			e.ID(r.id)
			e.U32(uint32(r.times))
		}
		e.End(at)
		c.releases = append(c.releases[:0], c.releases[n:]...)
	}
	c.aborts = c.line.Order(e, protocol.OpAbort, c.aborts)
	c.deletes = c.line.Order(e, protocol.OpDelete, c.deletes, 0)
	c.unnamed = c.line.Order(e, protocol.OpDelete, c.unnamed, protocol.DeletesUnnamed)
	if n := min(len(c.forgets), 1000); n > 0 {
		at := e.Begin(protocol.OpForget, 0, 0)
		e.U32(uint32(n))
		for _, id := range c.forgets[:n] {
			e.ID(id)
		}
		e.End(at)
		c.forgets = append(c.forgets[:0], c.forgets[n:]...)
	}
}

// releaseWithin is how long the end of a lease may wait for a request to go with.
const releaseWithin = 5 * time.Millisecond

// tellLater notes what the server is told with the next request, or soon if none follows. The end of a session says it
// all.
func (c *Client) tellLater(note func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	note()
	if !c.flushing {
		c.flushing = true
		time.AfterFunc(releaseWithin, c.flush)
	}
}

func (c *Client) flush() {
	_ = c.take(context.Background())
	defer c.give()
	c.mu.Lock()
	c.flushing = false
	c.mu.Unlock()
	c.line.SendNotes()
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// mapping is memory of the store that this process has mapped: an object's own, or a slab. The client's lock guards
// users and gone.
type mapping struct {
	id         ID
	memory     *gobuffer.Memory
	descriptor int // kept, so that another server can be told of the memory
	size       int64
	slab       bool
	sealed     bool // it was to be mapped for writing, and could not be any more
	users      int  // objects that are in use
	gone       bool // a slab in which nothing is left
}

// end unmaps it.
func (m *mapping) end() error {
	err := m.memory.Release()
	if m.descriptor >= 0 {
		err = errors.Join(err, unix.Close(m.descriptor))
	}
	return err
}

// held is an object that this process has leases of. The client's lock guards times and users.
type held struct {
	info    Info
	mapping *mapping // nil of one without bytes
	offset  int64
	times   int // leases
	users   int
	stale   *gobuffer.Memory // what its maker wrote to before it was sealed
	made    bool             // by this client
	bound   bool             // to its session
	deleted bool             // by this client
	session uint64           // in which it was made
	untold  error            // why the server does not know of it yet
	refused bool             // a server took what it was told of it for a breach of the protocol
}

// place is where an object's memory is, as the server says.
type place struct {
	where  uint8
	unit   ID
	size   int64
	offset int64
	sent   bool
}

func decodePlace(d *protocol.Decoder) (p place) {
	p.where = d.U8()
	if p.where == protocol.Nowhere {
		return p
	}
	p.unit, p.size, p.offset, p.sent = d.ID(), int64(d.Size()), int64(d.Size()), d.Flag()
	if p.where > protocol.OnDevice {
		d.Fail("an object's place of kind %d", p.where)
	}
	return p
}

// gone notes that the object was deleted: another server is not told of it.
func (h *held) gone() { h.deleted = true }
