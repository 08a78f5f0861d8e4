package gobuffer_test

import (
	"unsafe"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
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
	{"copymany", 6, (*modelWorld).copyMany},
	{"copyblocks", 8, (*modelWorld).copyBlocks},
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
	{"writememory", 2, (*modelWorld).writeMemory},
	{"synchronize", 1, (*modelWorld).synchronize},
	{"hostwrite", 2, (*modelWorld).hostWrite},
	{"viewonhost", 3, (*modelWorld).viewOfSome},
	{"writeview", 3, (*modelWorld).writeSomeView},
	{"releaseview", 2, (*modelWorld).releaseSomeView},
	{"setstream", 5, (*modelWorld).setStream},
	{"settransfer", 1, (*modelWorld).setTransfer},
	{"lend", 6, (*modelWorld).lend},
	{"cache", 5, (*modelWorld).cache},
	{"changed", 1, (*modelWorld).changed},
	{"dropkept", 1, (*modelWorld).dropKept},
	{"outlive", 2, (*modelWorld).outlive},
	{"kernel", 10, (*modelWorld).kernelByHandle},
	{"own", 8, (*modelWorld).kernelOnOwnStream},
	{"again", 4, (*modelWorld).kernelAgain},
	{"release", 3, (*modelWorld).releaseHandle},
	{"consumer", 7, (*modelWorld).consumer},
	{"covering", 3, (*modelWorld).covering},
	{"endstream", 3, (*modelWorld).endStream},
	{"progress", 4, (*modelWorld).progress},
}

func (w *modelWorld) slot() **held { return &w.held[w.random.IntN(w.arrays)] }

// some returns one of the arrays, or nil.
func (w *modelWorld) some() *held { return *w.slot() }

func (w *modelWorld) close(at **held) {
	h := *at
	if h == nil {
		return
	}
	w.logf("close %s", h.name)
	w.leave(h)
	was := h.stream()
	hurry := w.hurry(h)
	h.changes(h.indices())
	_ = w.call(h.array.Close)
	h.drop()
	*at = nil
	hurry()
	if w.random.IntN(4) == 0 {
		w.end(was)
	}
}

// hurry returns what lets the stream that h has now run ahead of all others, sometimes:
// on it may be the release of h's memory.
func (w *modelWorld) hurry(h *held) func() {
	id, ok := w.id(h)
	return func() {
		if ok && (w.hurried || w.random.IntN(3) == 0) {
			w.logf("    the user waits for %s", w.streamName(id))
			require.NoError(w.t, id.fake.Synchronize(id.device, id.stream))
		}
	}
}

func (w *modelWorld) closeArray() { w.close(w.slot()) }

func (w *modelWorld) fill() {
	if a := w.some(); a != nil {
		w.fillAll(a)
	}
}

func (w *modelWorld) fillAll(a *held) {
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
	if w.random.IntN(2) == 0 {
		array.Lent()
	}
	return v, func() {
		require.NoError(w.t, array.Close())
		v.drop()
	}
}

func (w *modelWorld) write() {
	if a, b := w.some(), w.some(); a != nil && b != nil && a.array.Size() > 0 && b.array.Size() > 0 {
		w.writeTo(a, b)
	}
}

func (w *modelWorld) writeTo(a, b *held) {
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
	w.seen(to)
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
	w.seen(a)
}

// change is an operation after which a holds list, perhaps in other memory.
func (w *modelWorld) change(a *held, list []value, op func() error) {
	w.leave(a)
	defer w.hurry(a)()
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
	w.seen(a)
}

func (w *modelWorld) assign() {
	if a, b := w.some(), w.some(); a != nil && b != nil {
		w.assignTo(a, b)
	}
}

func (w *modelWorld) assignTo(a, b *held) {
	w.logf("%s.Assign(%s)", a.name, b.name)
	w.order(b, b.indices(), false)
	w.order(a, nil, true)
	w.change(a, b.values(), func() error { return a.array.Assign(b.array) })
}

func (w *modelWorld) append() {
	if a, b := w.some(), w.some(); a != nil && b != nil && a.array.Size()+b.array.Size() <= 30 {
		w.appendTo(a, b)
	}
}

func (w *modelWorld) appendTo(a, b *held) {
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
	if a := w.some(); a != nil {
		w.moveTo(a, w.place())
	}
}

func (w *modelWorld) moveTo(a *held, p place) {
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
	if (*x).array.IsCached() != (*y).array.IsCached() {
		(*x).changes((*x).indices())
		(*y).changes((*y).indices())
	}
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
	a.changes(a.indices())
	_ = w.call(a.array.Free)
	a.drop()
}

func pointerTo(n *int64) gobuffer.Value {
	return gobuffer.Value{Type: arrayiface.Int64, Pointer: unsafe.Pointer(n)}
}
