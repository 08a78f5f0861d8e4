package gobuffer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// cells is a Memory and what all its elements should be.
type cells struct {
	name    string
	memory  *gobuffer.Memory
	kind    arrayiface.ElementType
	values  []value
	users   int // arrays and handles that hold it
	read    int // how often somebody read it
	written int
	work    []*foreignWork
	adopted bool
	keeps   []*keep
}

// foreignWork is a kernel that may not have run yet.
type foreignWork struct {
	name    string
	device  backendtest.Device
	stream  streamID
	touched []int // cells
	writes  bool
	done    atomic.Bool
	ended   bool           // its stream is no more
	safe    bool           // the memory's release waits for it
	all     bool           // hamr was told of it
	known   map[*held]bool // and these have it on a stream of theirs, or had
}

// streamID says which stream is meant, however it is called.
type streamID struct {
	fake   backendtest.Device
	device int
	stream backends.Stream // 0 is the default stream
}

// held is something that holds a reference to cells and works on a stream.
type held struct {
	name    string
	array   *gobuffer.Array  // nil in a handle
	handle  *gobuffer.Handle // nil in an array
	cells   *cells
	at      []int // the cells of the host's view
	device  int   // of a handle's consumer
	read    int   // of the cells, when a handle was last used
	written int
}

// ownStream is a stream that a user made.
type ownStream struct {
	streamID
	name string
}

const (
	mostArrays  = 6
	mostStreams = 3 // of each device
)

type modelWorld struct {
	*world
	character
	options  modelOptions
	random   *rand.Rand // for the step under way
	held     [mostArrays]*held
	handles  [3]*held
	views    [2]*held                      // of the host, which maps what they are of
	own      [2][2][mostStreams]*ownStream // by runtime and device
	defaults map[backends.Stream]bool      // are names of default streams
	// of streams that are of one device
	streamDevice map[backends.Stream]int
	number       int64 // the last one that was written somewhere
	count        int   // of things with names
	log          []string
	leaked       int // blocks that a failing Free left
	// What was to be read to when that failed, and is all zeros.
	abandoned []*gobuffer.Array
}

func newModelWorld(s *trial, o modelOptions, c character) *modelWorld {
	o.Devices = 2
	w := &modelWorld{random: rand.New(rand.NewPCG(1, 1)), world: &world{t: s, devices: o.make()}, character: c, options: o,
		defaults: map[backends.Stream]bool{0: true, legacy: true}, streamDevice: map[backends.Stream]int{}}
	var err error
	w.runtime, err = gobuffer.NewRuntime(host.New(), w.devices[0], w.devices[1])
	require.NoError(s, err)
	for _, f := range w.devices {
		require.NoError(s, f.Probe())
		for device := range 2 {
			named, err := f.Resolve(device, 0)
			require.NoError(s, err)
			w.defaults[named], w.streamDevice[named] = true, device
			if !hasStream(f, perThread) {
				continue
			}
			threads, err := f.Resolve(device, perThread)
			require.NoError(s, err)
			w.streamDevice[threads] = device
		}
	}
	return w
}

// hasStream reports whether a number stands for a stream of every device of d's.
func hasStream(d backendtest.Device, s backends.Stream) bool {
	_, err := d.StreamDevice(s)
	return err == nil
}

func (w *modelWorld) logf(format string, arguments ...any) {
	w.log = append(w.log, fmt.Sprintf("%3d ", len(w.log)+1)+fmt.Sprintf(format, arguments...))
}

func (w *modelWorld) step(x step) {
	w.random = rand.New(rand.NewPCG(x.seed, 1))
	stepKinds[x.kind].run(w)
	w.check()
}

// check ends the walk at the first thing that is wrong.
func (w *modelWorld) check() {
	for _, f := range w.devices {
		for _, v := range f.Violations() {
			w.t.Errorf("violation in %s: %s", f.Name(), v)
		}
	}
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// finish gives everything back and does what is still to do.
func (w *modelWorld) finish() {
	w.random = rand.New(rand.NewPCG(uint64(w.count), 7))
	for i := range w.views {
		w.releaseView(&w.views[i])
	}
	for i := range w.handles {
		w.release(&w.handles[i])
	}
	for i := range w.held {
		w.close(&w.held[i])
	}
	w.check()
	events := 0
	for _, s := range w.shuffled() {
		_ = s.fake.Synchronize(s.device, s.stream)
	}
	for _, f := range w.devices {
		f.Finish()
	}
	for _, target := range w.abandoned {
		for _, b := range hostBytes(target.Address(), target.Size()) {
			if b != 0 {
				w.t.Errorf("wrong value: memory was written to after its Read had failed")
			}
		}
		require.NoError(w.t, target.Close())
	}
	gobuffer.SweepBlocks(w.runtime)
	w.check()
	if err := w.runtime.ReleasePostponed(); err != nil {
		w.t.Errorf("error: %v", err)
	}
	left := 0
	for _, f := range w.devices {
		_, e := f.LiveHandles()
		blocks, _ := f.Live()
		events, left = events+e, left+blocks
	}
	if events != w.lost {
		w.t.Errorf("leak of events: %d", events-w.lost)
	}
	if left > w.leaked {
		w.t.Errorf("leak of memory: %d blocks", left-w.leaked)
	}
	w.assertNothingLive()
}

func (w *modelWorld) name(prefix string) string {
	w.count++
	return fmt.Sprintf("%s%d", prefix, w.count)
}

// fresh are numbers that no element had before.
func (w *modelWorld) fresh(n int) (list []value) {
	for range n {
		w.number++
		list = append(list, value{w.number, true})
	}
	return list
}

func (w *modelWorld) newCells(m *gobuffer.Memory, kind arrayiface.ElementType) *cells {
	return &cells{name: w.name("m"), memory: m, kind: kind, values: make([]value, m.Size()/kind.Size())}
}

// fakeOf is nil for memory without streams.
func (c *cells) fakeIn(w *modelWorld) backendtest.Device {
	if c.memory == nil {
		return nil
	}
	return w.deviceOf(c.memory)
}

func (c *cells) context() int { return max(c.memory.Region().Device, 0) }

// indices are the cells of an array's elements, in C order.
func (c *cells) indices(at backends.Address, l arrayiface.Layout) []int {
	list := make([]int, l.Count())
	if len(list) == 0 {
		return nil
	}
	start := int(at - c.memory.Region().Address)
	for i := range list {
		list[i] = (start + elementOffset(l, i)) / c.kind.Size()
	}
	return list
}

func (h *held) layout() arrayiface.Layout {
	if h.array != nil {
		return h.array.Layout()
	}
	return h.handle.Layout()
}

func (h *held) address() backends.Address {
	if h.array != nil {
		return h.array.Address()
	}
	return h.handle.Address()
}

func (h *held) stream() backends.Stream {
	if h.array != nil {
		return h.array.Stream()
	}
	return h.handle.Stream()
}

func (h *held) indices() []int {
	if h.cells == nil || h.at != nil {
		return h.at
	}
	return h.cells.indices(h.address(), h.layout())
}

// values are what h's elements should be.
func (h *held) values() []value {
	list := []value{}
	for _, i := range h.indices() {
		list = append(list, h.cells.values[i])
	}
	return list
}

func (h *held) kind() arrayiface.ElementType { return h.layout().Type }

// store makes h's elements the given ones.
func (h *held) store(list []value) {
	for i, at := range h.indices() {
		h.cells.values[at] = list[i]
	}
	h.changes(h.indices())
	if h.cells != nil {
		h.cells.written++
	}
}

// id is the stream that h's owner may have work on; ok is false if there is none.
func (w *modelWorld) id(h *held) (id streamID, ok bool) {
	if h.cells == nil || h.cells.fakeIn(w) == nil {
		return streamID{}, false
	}
	s := h.stream()
	id = streamID{h.cells.fakeIn(w), h.cells.context(), s}
	if h.handle != nil {
		id.device = h.device
	}
	if of, known := w.streamDevice[s]; known {
		id.device = of
	}
	if w.defaults[s] {
		id.stream = 0
	}
	// Page-locked memory belongs to no device, so the default stream of one is not its.
	return id, s != 0 || h.cells.memory.Region().Allocator.Kind() != backends.Pinned
}

// pending are the kernels on c that may not have run.
func (c *cells) pending() []*foreignWork {
	if c == nil {
		return nil
	}
	c.work = slices.DeleteFunc(c.work, func(k *foreignWork) bool { return k.done.Load() })
	return slices.Clone(c.work)
}

// knows reports whether whatever is done through h is promised to run after k.
func (w *modelWorld) knows(h *held, k *foreignWork) bool {
	if k.all || k.known[h] {
		return true
	}
	id, ok := w.id(h)
	return ok && id == k.stream
}

// inherit makes to know what from knows.
func (w *modelWorld) inherit(to, from *held) {
	for _, k := range from.cells.pending() {
		if w.knows(from, k) {
			k.known[to] = true
		}
	}
}

// holders are all that hold cells.
func (w *modelWorld) holders() (list []*held) {
	for _, h := range slices.Concat(w.held[:], w.handles[:], w.views[:]) {
		if h != nil {
			list = append(list, h)
		}
	}
	return list
}

// hold makes h a user of c.
func (h *held) hold(c *cells) {
	h.cells = c
	if c != nil {
		c.users++
	}
}

// drop is after h gave up its memory.
func (h *held) drop() {
	if h.cells != nil {
		for _, k := range h.cells.pending() {
			k.safe = k.safe || k.all || k.known[h]
			// What a handle's stream holds is waited for by everybody from then on.
			k.all = k.all || (h.handle != nil && k.known[h] && !left("released handles"))
		}
		h.cells.users--
	}
	h.cells = nil
}

// moved follows an array to the memory that it has now, where it holds list.
func (w *modelWorld) moved(h *held, list []value) {
	now := h.array.Memory()
	if h.cells == nil || now != h.cells.memory {
		h.changes(h.all())
		h.drop()
		if now != nil {
			h.hold(w.newCells(now, h.array.Type()))
		}
	}
	if h.cells != nil {
		more := h.cells.memory.Size()/h.cells.kind.Size() - len(h.cells.values)
		h.cells.values = append(h.cells.values, make([]value, max(more, 0))...)
	}
	if assert.Equal(w.t, len(list), h.array.Size(), "size of %s", h.name) {
		h.store(list)
	}
}
