package gobuffer_test

import (
	"errors"
	"unsafe"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// stepKinds are what walks consist of, and how often.
var stepKinds = []struct {
	name   string
	weight int
	run    func(w *modelWorld)
}{
	{"make", 6, (*modelWorld).makeArray},
	{"adopt", 2, (*modelWorld).adopt},
	{"slice", 5, (*modelWorld).view},
	{"copy", 4, (*modelWorld).copyArray},
	{"fill", 4, (*modelWorld).fill},
	{"write", 6, (*modelWorld).write},
	{"set", 4, (*modelWorld).set},
	{"assign", 5, (*modelWorld).assign},
	{"append", 4, (*modelWorld).append},
	{"resize", 3, (*modelWorld).resize},
	{"reserve", 1, (*modelWorld).reserve},
	{"move", 5, (*modelWorld).move},
	{"swap", 1, (*modelWorld).swap},
	{"free", 1, (*modelWorld).free},
	{"close", 3, (*modelWorld).closeArray},
	{"read", 5, (*modelWorld).readArray},
	{"text", 1, (*modelWorld).text},
	{"readmemory", 2, (*modelWorld).readMemory},
	{"synchronize", 1, (*modelWorld).synchronize},
	{"hostwrite", 2, (*modelWorld).hostWrite},
	{"setstream", 5, (*modelWorld).setStream},
	{"settransfer", 1, (*modelWorld).setTransfer},
	{"kernel", 10, (*modelWorld).kernelByHandle},
	{"again", 4, (*modelWorld).kernelAgain},
	{"release", 3, (*modelWorld).releaseHandle},
	{"consumer", 7, (*modelWorld).consumer},
	{"covering", 3, (*modelWorld).covering},
	{"endstream", 3, (*modelWorld).endStream},
	{"progress", 4, (*modelWorld).progress},
}

// faultKinds are the calls that fail where calls do.
var faultKinds = []string{"Resolve", "NewEvent", "Record", "Wait", "DestroyEvent", "Synchronize", "SynchronizeDevice", "Idle",
	"Allocate", "Free", "Copy", "Fill", "Convert", "DeviceCount"}

// call asks something of hamr; in some modes one of the device's calls fails then. What
// is returned is an error that there has to be.
func (w *modelWorld) call(op func() error) error {
	if !w.options.faults || w.random.IntN(5) != 0 {
		err := op()
		var full *backends.OutOfMemoryError
		if err != nil && !(w.options.Memory != 0 && errors.As(err, &full)) {
			w.t.Errorf("error: %v", err)
			w.t.FailNow()
		}
		if err != nil {
			w.logf("    out of memory")
		}
		return err
	}
	kind, nth := faultKinds[w.random.IntN(len(faultKinds))], 1+w.random.IntN(3)
	var counts []int
	for _, f := range w.fakes() {
		counts = append(counts, f.CallCount(kind))
		f.FailAt(kind, nth, errInjected)
	}
	err := op()
	struck := 0
	for i, f := range w.fakes() {
		f.StopFailing()
		if f.CallCount(kind)-counts[i] >= nth {
			struck++
		}
	}
	switch kind {
	case "DestroyEvent":
		w.lost += struck
	case "Free":
		w.leaked += struck
	}
	if struck > 0 {
		w.logf("    %s %d fails: %v", kind, nth, err)
	}
	if err != nil && (struck == 0 || !errors.Is(err, error(errInjected))) {
		w.t.Errorf("wrong error: %v", err)
		w.t.FailNow()
	}
	return err
}

// order is what users have to do before elements of h are read or written through it:
// see to work that hamr cannot know of. nil are all elements of the memory.
func (w *modelWorld) order(h *held, touched []int, writes bool) {
	c := h.cells
	for _, k := range c.pending() {
		if !w.knows(h, k) && (k.writes || writes) && (touched == nil || common(touched, k.touched)) {
			w.tell(h, k)
		}
	}
	switch {
	case c == nil:
	case writes:
		c.written++
	default:
		c.read++
	}
}

func common(a, b []int) bool {
	for _, i := range a {
		for _, j := range b {
			if i == j {
				return true
			}
		}
	}
	return false
}

// tell makes what is done through h run after k in one of the ways that there are.
func (w *modelWorld) tell(h *held, k *foreignWork) {
	id, ok := w.id(h)
	switch w.random.IntN(3) {
	case 0:
		f := h.cells.fakeIn(w)
		if f != k.stream.fake || h.cells.context() != k.stream.device || k.ended {
			break
		}
		w.logf("    %s: After(%s), which holds %s", h.name, w.streamName(k.stream), k.name)
		if w.call(func() error { return h.cells.memory.After(h.stream(), k.stream.stream) }) != nil {
			break
		}
		w.told(h.cells, k.stream)
		return
	case 1:
		if !ok || k.ended || id.fake != k.stream.fake {
			break
		}
		w.logf("    %s's stream waits for %s by an event", h.name, k.name)
		f := id.fake
		e, err := f.NewEvent(k.stream.device)
		require.NoError(w.t, err)
		require.NoError(w.t, f.Record(k.stream.device, e, k.stream.stream))
		require.NoError(w.t, f.Wait(id.device, id.stream, e))
		require.NoError(w.t, f.DestroyEvent(k.stream.device, e))
		for _, other := range w.holders() {
			if its, ok := w.id(other); ok && its == id && other.cells == h.cells {
				k.known[other] = true
			}
		}
		return
	}
	w.wait(k)
}

// told is after After.
func (w *modelWorld) told(c *cells, s streamID) {
	for _, k := range c.pending() {
		k.all = k.all || k.stream == s
	}
}

// wait is what a user does who launched a kernel.
func (w *modelWorld) wait(k *foreignWork) {
	w.logf("    the user waits for %s", k.name)
	if k.ended {
		require.NoError(w.t, k.stream.fake.SynchronizeDevice(k.stream.device))
		return
	}
	require.NoError(w.t, k.stream.fake.Synchronize(k.stream.device, k.stream.stream))
}

// leave is what users have to do before h may give up its memory.
func (w *modelWorld) leave(h *held) {
	c := h.cells
	if c == nil {
		return
	}
	w.notice(h)
	for _, k := range c.pending() {
		if c.users == 1 && !k.done.Load() && (c.adopted || !(k.safe || k.known[h])) {
			w.wait(k)
		}
	}
}

// notice keeps what h knows by its stream.
func (w *modelWorld) notice(h *held) {
	for _, k := range h.cells.pending() {
		if w.knows(h, k) {
			k.known[h] = true
		}
	}
}

// failed is after an operation on h that was to write to the given elements. Nothing
// has changed, save that elements to be written are in doubt where a device failed.
func (w *modelWorld) failed(h *held, err error, written []int) {
	var full *backends.OutOfMemoryError
	if h.cells == nil || errors.As(err, &full) {
		return
	}
	for _, i := range written {
		h.cells.values[i].known = false
	}
}

// all are the cells of h's memory, which some operations write to beyond h's elements.
func (h *held) all() (list []int) {
	if h.cells != nil {
		for i := range h.cells.values {
			list = append(list, i)
		}
	}
	return list
}

func (w *modelWorld) slot() **held { return &w.arrays[w.random.IntN(len(w.arrays))] }

// some returns one of the arrays, or nil.
func (w *modelWorld) some() *held { return *w.slot() }

func (w *modelWorld) close(at **held) {
	h := *at
	if h == nil {
		return
	}
	w.logf("close %s", h.name)
	w.leave(h)
	_ = w.call(h.array.Close)
	h.drop()
	*at = nil
}

func (w *modelWorld) closeArray() { w.close(w.slot()) }

func (w *modelWorld) fill() {
	a := w.some()
	if a == nil {
		return
	}
	v := w.fresh(1)[0]
	w.logf("%s.Fill(%d)", a.name, v.number)
	w.order(a, a.indices(), true)
	one := w.scalar(arrayiface.Int64, int(v.number))
	defer one.Close()
	if err := w.call(func() error { return a.array.Fill(one) }); err != nil {
		w.failed(a, err, a.indices())
		return
	}
	list := a.values()
	for i := range list {
		list[i] = v
	}
	a.store(list)
}

// part is some of h's elements, in a view that is closed by the function returned.
func (w *modelWorld) part(h *held, n int) (v *held, closed func()) {
	step := 1
	if n > 1 && h.array.Size() >= 2*n {
		step = 1 + w.random.IntN(2)
	}
	start := w.random.IntN(h.array.Size() - (n-1)*step)
	array, err := h.array.Slice(0, start, start+(n-1)*step+1, step)
	require.NoError(w.t, err)
	v = &held{name: h.name + "'", array: array}
	v.hold(h.cells)
	w.inherit(v, h)
	return v, func() {
		require.NoError(w.t, array.Close())
		v.drop()
	}
}

func (w *modelWorld) write() {
	a, b := w.some(), w.some()
	if a == nil || b == nil || a.array.Size() == 0 || b.array.Size() == 0 {
		return
	}
	n := 1 + w.random.IntN(min(a.array.Size(), b.array.Size()))
	to, closeTarget := w.part(a, n)
	defer closeTarget()
	from, closeSource := w.part(b, n)
	defer closeSource()
	list := from.values()
	w.logf("%s%v.Write(%s%v)", a.name, to.indices(), b.name, from.indices())
	w.order(from, from.indices(), false)
	w.order(to, to.indices(), true)
	if err := w.call(func() error { return to.array.Write(from.array) }); err != nil {
		w.failed(to, err, to.indices())
		return
	}
	to.store(list)
}

func (w *modelWorld) set() {
	a, b := w.some(), w.some()
	if a == nil || b == nil || a.array.Size() == 0 || b.array.Size() == 0 {
		return
	}
	n := 1 + w.random.IntN(min(a.array.Size(), b.array.Size()))
	at, start := w.random.IntN(a.array.Size()-n+1), w.random.IntN(b.array.Size()-n+1)
	w.logf("%s.Set(%d, %s, %d, %d)", a.name, at, b.name, start, n)
	w.order(b, b.indices(), false)
	w.order(a, a.indices(), true)
	list := a.values()
	copy(list[at:], b.values()[start:start+n])
	if err := w.call(func() error { return a.array.Set(at, b.array, start, n) }); err != nil {
		w.failed(a, err, a.indices())
		return
	}
	a.store(list)
}

// change is an operation after which a holds list, perhaps in other memory.
func (w *modelWorld) change(a *held, list []value, op func() error) {
	w.leave(a)
	size := a.array.Size()
	if err := w.call(op); err != nil {
		if a.array.Size() != size {
			w.t.Errorf("size changed by what failed: %d elements, not %d", a.array.Size(), size)
		}
		if a.cells != nil && a.array.Memory() != a.cells.memory {
			w.t.Errorf("memory changed by what failed")
			w.t.FailNow()
		}
		w.failed(a, err, a.all())
		return
	}
	w.moved(a, list)
}

func (w *modelWorld) assign() {
	a, b := w.some(), w.some()
	if a == nil || b == nil {
		return
	}
	w.logf("%s.Assign(%s)", a.name, b.name)
	w.order(b, b.indices(), false)
	w.order(a, nil, true)
	w.change(a, b.values(), func() error { return a.array.Assign(b.array) })
}

func (w *modelWorld) append() {
	a, b := w.some(), w.some()
	if a == nil || b == nil || a.array.Size()+b.array.Size() > 30 {
		return
	}
	w.logf("%s.Append(%s)", a.name, b.name)
	w.order(b, b.indices(), false)
	w.order(a, nil, true)
	w.change(a, append(a.values(), b.values()...), func() error { return a.array.Append(b.array) })
}

func (w *modelWorld) resize() {
	a := w.some()
	if a == nil {
		return
	}
	n := w.random.IntN(14)
	list := a.values()
	list = list[:min(n, len(list))]
	v := value{}
	var one *gobuffer.Array
	if w.random.IntN(2) == 0 {
		v = w.fresh(1)[0]
		one = w.scalar(arrayiface.Int64, int(v.number))
		defer one.Close()
	}
	for len(list) < n {
		list = append(list, v)
	}
	w.logf("%s.Resize(%d, %d)", a.name, n, v.number)
	w.order(a, nil, true)
	w.change(a, list, func() error { return a.array.Resize(n, one) })
}

func (w *modelWorld) reserve() {
	a := w.some()
	if a == nil {
		return
	}
	n := w.random.IntN(30)
	w.logf("%s.Reserve(%d)", a.name, n)
	w.order(a, a.indices(), false)
	w.change(a, a.values(), func() error { return a.array.Reserve(n, nil) })
}

func (w *modelWorld) move() {
	a := w.some()
	if a == nil {
		return
	}
	p := w.place()
	w.logf("%s.Move(%s)", a.name, p)
	w.order(a, a.indices(), false)
	w.change(a, a.values(), func() error { return a.array.Move(p.allocator, p.device) })
	w.logf("    its stream is %#x", uintptr(a.array.Stream()))
}

func (w *modelWorld) swap() {
	x, y := w.slot(), w.slot()
	if *x == nil || *y == nil || x == y {
		return
	}
	w.logf("%s and %s swap places", (*x).name, (*y).name)
	require.NoError(w.t, (*x).array.Swap((*y).array))
	(*x).array, (*y).array = (*y).array, (*x).array
	*x, *y = *y, *x
}

func (w *modelWorld) free() {
	a := w.some()
	if a == nil {
		return
	}
	w.logf("%s.Free()", a.name)
	w.leave(a)
	_ = w.call(a.array.Free)
	a.drop()
}

func (w *modelWorld) readArray() {
	a := w.some()
	if a == nil {
		return
	}
	w.logf("the host reads %s", a.name)
	w.order(a, a.indices(), false)
	var h *gobuffer.Handle
	if w.call(func() (err error) { h, err = a.array.Access(backends.SpaceHost, -1); return err }) != nil {
		return
	}
	var got []int64
	for i := range h.Layout().Count() {
		got = append(got, number(a.kind(), hostBytes(h.Address()+backends.Address(elementOffset(h.Layout(), i)), a.kind().Size())))
	}
	w.compare("the host in "+a.name, a.values(), got)
	_ = w.call(h.Release)
}

func (w *modelWorld) text() {
	a := w.some()
	if a == nil {
		return
	}
	w.logf("%s.Text(0)", a.name)
	w.order(a, a.indices(), false)
	for _, v := range a.values() {
		if !v.known {
			return
		}
	}
	plain := w.array(place{backends.Malloc, -1}.options(0), model{a.kind(), []int{a.array.Size()}, image(a.kind(), a.values())})
	defer plain.Close()
	want, err := plain.Text(0)
	require.NoError(w.t, err)
	var got string
	if w.call(func() (err error) { got, err = a.array.Text(0); return err }) == nil && got != want {
		w.t.Errorf("wrong value seen by Text: %s, not %s", got, want)
	}
}

// readMemory asks for the elements where they lie in order.
func (w *modelWorld) readMemory() {
	a := w.some()
	if a == nil || a.cells == nil || a.array.Size() == 0 || !a.array.Layout().ContiguousC() || a.array.Accessible(backends.SpaceHost) {
		return
	}
	w.logf("%s's memory is read", a.name)
	w.order(a, a.indices(), false)
	size := a.array.Layout().NBytes()
	target := w.array(place{backends.Malloc, -1}.options(0), model{arrayiface.Uint8, []int{size}, make([]byte, size)})
	defer target.Close()
	if w.call(func() error { return a.cells.memory.Read(target.Address(), a.array.Address(), size, a.array.Stream()) }) != nil {
		return
	}
	w.compare("Memory.Read in "+a.name, a.values(), numbersIn(a.kind(), hostBytes(target.Address(), size)))
}

func numbersIn(kind arrayiface.ElementType, data []byte) (list []int64) {
	for ; len(data) > 0; data = data[kind.Size():] {
		list = append(list, number(kind, data))
	}
	return list
}

// truth compares what is in memory now.
func (w *modelWorld) truth(what string, h *held) {
	if h.cells == nil || len(h.indices()) == 0 {
		return
	}
	all := w.peek(h.cells.memory)
	var got []int64
	for _, i := range h.indices() {
		got = append(got, number(h.kind(), all[i*h.kind().Size():]))
	}
	w.compare(what+" in "+h.name, h.values(), got)
}

func (w *modelWorld) synchronize() {
	a := w.some()
	if a == nil {
		return
	}
	w.logf("%s.Synchronize()", a.name)
	w.order(a, a.indices(), false)
	if w.call(a.array.Synchronize) == nil {
		w.truth("who synchronised", a)
	}
}

func (w *modelWorld) hostWrite() {
	a := w.some()
	if a == nil || !a.array.Accessible(backends.SpaceHost) {
		return
	}
	list := w.fresh(a.array.Size())
	w.logf("the host writes to %s", a.name)
	w.order(a, a.indices(), true)
	var h *gobuffer.Handle
	if w.call(func() (err error) { h, err = a.array.Access(backends.SpaceHost, -1); return err }) != nil {
		return
	}
	for i, v := range list {
		at := h.Address() + backends.Address(elementOffset(h.Layout(), i))
		copy(hostBytes(at, a.kind().Size()), element(a.kind(), int(v.number)))
	}
	a.store(list)
	_ = w.call(h.Release)
}

func pointerTo(n *int64) gobuffer.Value {
	return gobuffer.Value{Type: arrayiface.Int64, Pointer: unsafe.Pointer(n)}
}
