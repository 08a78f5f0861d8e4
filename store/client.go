package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hamr/gobuffer"
	"hamr/internal/deadline"
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

	// Of who holds turn.
	socket    *wire.WaitingSocket
	unwatch   func() // ends what begin began
	lost      error  // why there is no socket
	book      int    // what the server wrote down, or -1
	books     []int  // what earlier ones did, of which it was not told
	request   uint64
	out       protocol.Encoder
	in        []byte
	undone    bool            // the request is, whose answer is being read
	short     bool            // what was received should have descriptors that could not be opened
	abandoned map[uint64]call // whose replies nobody waits for
	owed      int             // as how many short ones they count
	welcome   welcome

	mu       sync.Mutex
	held     map[ID]*held
	slabs    map[ID]*mapping
	releases []release
	forgets  []ID
	aborts   []ID
	deletes  []ID // what was sealed though nobody waited for it any more
	flushing bool
	joining  bool // a goroutine looks for a server
	closed   bool
	idle     []*wire.WaitingSocket // connections for waiting
	watches  map[*Watch]struct{}

	devices sync.Map // where devices' memory is mapped, by UUID
}

type release struct {
	id    ID
	times int
}

// welcome is what a server says of itself.
type welcome struct {
	process     int
	instance    ID
	maxMetadata int
	book        int // a descriptor that is whoever's who reads this, or -1
}

// Connect returns a client of the server at a path, or at [DefaultPath] where it is empty; r has
// the memory that objects are mapped by, [gobuffer.Default] where it is nil. The error is a
// *LostError where nobody answers within a second, and a *RefusedError where the other end is another user's.
func Connect(ctx context.Context, path string, r *gobuffer.Runtime) (*Client, error) {
	if path == "" {
		path = DefaultPath()
	}
	if err := wire.CheckPath(path); err != nil {
		return nil, err
	}
	if r == nil {
		var err error
		if r, err = gobuffer.Default(); err != nil {
			return nil, err
		}
	}
	c := &Client{
		runtime: r, path: path, turn: make(chan struct{}, 1), hangUp: new(atomic.Bool), in: make([]byte, protocol.MostPacket), abandoned: map[uint64]call{}, book: -1,
		held: map[ID]*held{}, slabs: map[ID]*mapping{}, watches: map[*Watch]struct{}{},
	}
	var err error
	socket, w, err := c.connect(ctx)
	if err == nil {
		_ = c.take(context.Background()) // begin's goroutine may want it at once
		c.begin(socket, w)
		c.give()
	}
	return c, err
}

// SetTimeout ends each request by [context.DeadlineExceeded] that the server has not answered for so long, as
// where it stands still; 0, as at first, is no limit. Calls that wait for others end by their contexts alone.
func (c *Client) SetTimeout(timeout time.Duration) error {
	if c == nil || c.turn == nil {
		return &ArgumentError{Argument: "client", Value: "nil", Accepted: "what Connect returns"}
	}
	if timeout < 0 {
		return &ArgumentError{Argument: "timeout", Value: timeout.String(), Accepted: "0 for none, or more"}
	}
	c.timeout.Store(int64(timeout))
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

// connect opens a connection and greets the server.
func (c *Client) connect(ctx context.Context) (*wire.WaitingSocket, welcome, error) {
	socket, err := wire.Dial(c.path)
	if wire.RanOut(err) {
		return nil, welcome{}, wire.NoDescriptors()
	}
	if err != nil {
		return nil, welcome{}, &LostError{Path: c.path, Reason: err}
	}
	socket.HangUp = c.hangUp
	until := time.Now().Add(wire.AnswersWithin)
	soon := deadline.Until(ctx, until)
	defer soon.End()
	w, err := greet(soon, socket, c.path)
	if err == nil {
		return socket, w, nil
	}
	socket.Close()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !time.Now().Before(until) {
		err = &LostError{Path: c.path, Reason: fmt.Errorf("process %d listens there, and has not answered for %s", socket.Peer, wire.AnswersWithin)}
	}
	return nil, welcome{}, err
}

func greeting(machine string) []byte {
	var e protocol.Encoder
	at := e.Begin(protocol.OpHello, 0, 1)
	e.U32(protocol.ProtocolVersion)
	e.U32(uint32(os.Getpid()))
	e.Text(machine)
	e.End(at)
	return e.Bytes
}

func greet(ctx context.Context, socket *wire.WaitingSocket, path string) (w welcome, err error) {
	if socket.Peer, err = wire.CheckPeer(socket.Descriptor, path); err != nil {
		return w, err
	}
	machine, err := wire.BootID()
	if err != nil {
		return w, err
	}
	if err := socket.Send(greeting(machine), nil); err != nil && err != unix.EPIPE { // else it may have said why
		return w, &LostError{Path: path, Reason: err}
	}
	socket.Stopped = ctx.Err
	buffer := make([]byte, 1024)
	n, descriptors, err := socket.Receive(buffer)
	w.book = -1
	defer func() {
		if err == nil && len(descriptors) > 0 {
			w.book, descriptors = descriptors[0], descriptors[1:]
		}
		wire.CloseAll(descriptors)
	}()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return w, err
	} else if err == wire.ErrShort {
		return w, wire.NoDescriptors()
	} else if err != nil {
		return w, &LostError{Path: path, Reason: err}
	}
	f, _, err := protocol.NextFrame(buffer[:n])
	if err != nil {
		return w, err
	}
	d := protocol.Decoder{Rest: f.Payload}
	if f.Status != protocol.StatusDone {
		return w, protocol.DecodeError(f.Status, &d)
	}
	version := d.U32()
	w.process = int(d.U32())
	boot := d.Text()
	w.instance, w.maxMetadata = d.ID(), int(d.U32())
	if err := d.Done(); err != nil {
		return w, err
	}
	if version != protocol.ProtocolVersion || boot != machine {
		return w, &RefusedError{Path: path, Reason: fmt.Sprintf("version %d of the protocol, start %s of a machine", version, boot)}
	}
	return w, nil
}

// Path returns where the server is looked for.
func (c *Client) Path() string { return c.path }

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

// lose ends the connection; the next call tries to find a server.
func (c *Client) lose(reason error) error {
	if reason == io.EOF {
		reason = errors.New("the connection ended")
	}
	c.endSocket()
	c.lost = reason
	clear(c.abandoned)
	c.owed = 0
	c.rejoinLater()
	return &LostError{Path: c.path, Reason: reason}
}

// encodeReleases appends what nobody needs an answer to, as much of it as goes with a request.
func (c *Client) encodeReleases(e *protocol.Encoder) {
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
	tell := func(operation uint16, ids []ID) (rest []ID) {
		n := min(len(ids), max(mostAbandoned-c.owed, 0))
		for _, id := range ids[:n] {
			c.request++
			c.owe(c.request, call{operation: operation})
			at := e.Begin(operation, 0, c.request)
			e.ID(id)
			if operation == protocol.OpDelete {
				e.Flag(false)
			}
			e.End(at)
		}
		return append(ids[:0], ids[n:]...)
	}
	c.aborts, c.deletes = tell(protocol.OpAbort, c.aborts), tell(protocol.OpDelete, c.deletes)
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

// tellLater has the server told of what note notes, with the next request, or soon though none
// follows. The end of a session says it all.
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
	c.tellNow()
}

// tellNow has the server told of what was noted. The turn is the caller's.
func (c *Client) tellNow() {
	for c.socket != nil && c.collect(context.Background(), mostAbandoned/2) == nil {
		c.out.Bytes = c.out.Bytes[:0]
		c.encodeReleases(&c.out)
		if len(c.out.Bytes) == 0 {
			return
		}
		if err := c.socket.Send(c.out.Bytes, nil); err != nil {
			_ = c.lose(err)
		}
	}
}

// closeWithin is how long Close waits for the answer to a request that is under way.
const closeWithin = time.Second

// Close ends the session, and with it its leases. What is mapped stays until it is released.
// A request that is under way has a second to be answered; those that wait for something end at
// once, with ErrClosed. Closing again is harmless.
func (c *Client) Close() error {
	if c == nil || c.turn == nil {
		return nil
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	for _, s := range c.idle {
		s.Close()
	}
	c.idle = nil
	watches := c.watches
	c.watches = nil
	var unused []*mapping
	for id, m := range c.slabs {
		if m.users == 0 {
			unused = append(unused, m)
			delete(c.slabs, id)
		} else {
			m.gone = true
		}
	}
	c.mu.Unlock()
	late := time.AfterFunc(closeWithin, func() { c.hangUp.Store(true) })
	for w := range watches {
		_ = w.Close()
	}
	_ = c.take(context.Background())
	late.Stop()
	c.hangUp.Store(true)
	if c.socket != nil {
		_ = unix.Shutdown(c.socket.Descriptor, unix.SHUT_RDWR)
		c.endSocket()
	}
	c.closeBooks()
	c.give()
	var err error
	for _, m := range unused {
		err = errors.Join(err, m.end())
	}
	return err
}
