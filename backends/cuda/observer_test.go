package cuda

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// noted is a Witness that writes down what it is told.
type noted struct {
	lines  []string
	number uint64
}

func (n *noted) note(format string, arguments ...any) {
	n.lines = append(n.lines, fmt.Sprintf(format, arguments...))
}

func (n *noted) Enqueue(w backends.Work) (uint64, func()) {
	n.number++
	n.note("%d: %s", w.Queue, w.Name)
	for _, t := range w.Touches {
		n.note("  %s %#x %d", [...]string{"uses", "reads", "writes"}[t.Writes], uintptr(t.Address), t.Size)
	}
	return n.number, nil
}

func (n *noted) Refused(q backends.Queue, _ uint64)          { n.note("%d: refused", q) }
func (n *noted) After(q, other backends.Queue)               { n.note("%d: after %d", q, other) }
func (n *noted) Record(e backends.Event, q backends.Queue)   { n.note("%d: record", q) }
func (n *noted) Wait(q backends.Queue, e backends.Event)     { n.note("%d: wait", q) }
func (n *noted) Over(q backends.Queue)                       { n.note("%d: over", q) }
func (n *noted) Reached(e backends.Event)                    { n.note("reached") }
func (n *noted) Close(q backends.Queue) bool                 { n.note("%d: closed", q); return true }
func (n *noted) Forget(e backends.Event)                     { n.note("forgotten") }
func (n *noted) Made(at backends.Address, size int)          { n.note("made %#x %d", uintptr(at), size) }
func (n *noted) taken() (lines []string)                     { lines, n.lines = n.lines, nil; return lines }
func lines(text ...string) []string                          { return text }
func line(format string, arguments ...any) string            { return fmt.Sprintf(format, arguments...) }
func addressOf[T any](value *T) uintptr                      { return uintptr(unsafe.Pointer(value)) }
func (r *rig) must(t *testing.T, f uintptr, args ...uintptr) { require.NoError(t, r.call(f, args...)) }

// observed is an emulated device, whose context is current, that a noted witness is told of.
func observedRig(t *testing.T, s settings) (*rig, *noted) {
	t.Helper()
	r := emulate(t, s)
	v, err := r.enter(0, defaultStream)
	require.NoError(t, err)
	n := &noted{}
	stop, err := r.Observe(n)
	require.NoError(t, err)
	t.Cleanup(func() {
		stop()
		v.leave()
	})
	return r, n
}

func (r *rig) rawStream(t *testing.T, flags uintptr) uintptr {
	t.Helper()
	stream := new([1]uintptr)
	r.must(t, r.driver.StreamCreate, addressOf(stream), flags)
	return stream[0]
}

func (r *rig) rawMemory(t *testing.T, size uintptr) uintptr {
	t.Helper()
	at := new([1]uintptr)
	r.must(t, r.driver.MemAlloc, addressOf(at), size)
	return at[0]
}

func TestAnObserverTellsOfWork(t *testing.T) {
	r, n := observedRig(t, nil)
	s := r.rawStream(t, nonBlocking)
	a, b := r.rawMemory(t, 4096), r.rawMemory(t, 4096)
	n.taken()
	r.must(t, r.driver.Memset8, a+1, 7, 100, s)
	r.must(t, r.driver.Memset16, a, 7, 100, s)
	r.must(t, r.driver.Memset32, a, 7, 100, s)
	r.must(t, r.driver.Memset8Pitched, a, 64, 7, 10, 3, s)
	r.must(t, r.driver.Memset32Pitched, a, 64, 7, 10, 3, s)
	assert.Equal(t, lines(
		"1: cuMemsetD8Async", line("  writes %#x 100", a+1),
		"1: cuMemsetD16Async", line("  writes %#x 200", a),
		"1: cuMemsetD32Async", line("  writes %#x 400", a),
		"1: cuMemsetD2D8Async", line("  writes %#x 138", a),
		"1: cuMemsetD2D32Async", line("  writes %#x 168", a),
	), n.taken())
	r.must(t, r.driver.MemcpyAsync, b, a, 50, s)
	r.must(t, r.driver.StreamSynchronize, s)
	assert.Equal(t, lines(
		"1: cuMemcpyAsync", line("  writes %#x 50", b), line("  reads %#x 50", a),
		"1: over", "1: over",
	), n.taken(), "told of by the call, and by what CUPTI says of waiting")
	r.fail("cuMemsetD8Async", 1, 1)
	assert.Error(t, r.call(r.driver.Memset8, a, 7, 100, s))
	assert.Equal(t, lines("1: cuMemsetD8Async", line("  writes %#x 100", a), "1: refused"), n.taken())
	r.must(t, r.driver.StreamDestroy, s)
	assert.Equal(t, lines("1: closed"), n.taken())
	r.must(t, r.driver.MemFree, a)
	r.must(t, r.driver.MemFree, b)
}

// TestACopyToOrdinaryMemoryIsOverAtItsReturn has one to memory that the driver knows beside it, which is not.
func TestACopyToOrdinaryMemoryIsOverAtItsReturn(t *testing.T) {
	r, n := observedRig(t, nil)
	s, a := r.rawStream(t, nonBlocking), r.rawMemory(t, 64)
	pinned := new([1]uintptr)
	r.must(t, r.driver.MemHostAlloc, addressOf(pinned), 64, 0)
	n.taken()
	ordinary := make([]byte, 64)
	r.must(t, r.driver.MemcpyAsync, addressOf(&ordinary[0]), a, 64, s)
	runtime.KeepAlive(ordinary)
	assert.Equal(t, "1: over", n.lines[len(n.lines)-1])
	n.taken()
	r.must(t, r.driver.MemcpyAsync, pinned[0], a, 64, s)
	assert.Equal(t, lines("1: cuMemcpyAsync", line("  writes %#x 64", pinned[0]), line("  reads %#x 64", a)), n.taken())
	r.must(t, r.driver.MemFreeHost, pinned[0])
	assert.Equal(t, lines("1: over"), n.taken(), "it waits for the device")
	r.must(t, r.driver.MemFree, a)
	r.must(t, r.driver.StreamDestroy, s)
}

func TestAnObserverTellsOfOrder(t *testing.T) {
	r, n := observedRig(t, nil)
	first, second := r.rawStream(t, nonBlocking), r.rawStream(t, nonBlocking)
	event := new([1]uintptr)
	r.must(t, r.driver.EventCreate, addressOf(event), disableTiming)
	r.must(t, r.driver.EventRecord, event[0], first)
	assert.Equal(t, lines("1: record", "1: record"), n.taken(), "before, and after, when others may have come in between")
	r.must(t, r.driver.StreamWaitEvent, second, event[0], 0)
	assert.Equal(t, lines("2: wait"), n.taken())
	assert.NotZero(t, r.try(r.driver.EventQuery, event[0]), "the emulator is late")
	assert.Empty(t, n.taken())
	r.must(t, r.driver.EventSynchronize, event[0])
	r.must(t, r.driver.EventQuery, event[0])
	r.must(t, r.driver.StreamQuery, first)
	r.must(t, r.driver.EventDestroy, event[0])
	assert.Equal(t, lines("reached", "reached", "1: over", "forgotten"), n.taken())
	r.must(t, r.driver.CtxSynchronize)
	assert.ElementsMatch(t, lines("1: over", "2: over", "1: over", "2: over"), n.taken())
	r.must(t, r.driver.StreamDestroy, first)
	r.must(t, r.driver.StreamDestroy, second)
}

func TestTheLegacyStreamsOrderIsToldOf(t *testing.T) {
	r, n := observedRig(t, nil)
	blocking, other, a := r.rawStream(t, 0), r.rawStream(t, nonBlocking), r.rawMemory(t, 64)
	n.taken()
	fill := func(s uintptr) []string {
		r.must(t, r.driver.Memset8, a, 1, 1, s)
		var told []string
		for _, line := range n.taken() {
			if !strings.Contains(line, "writes") {
				told = append(told, line)
			}
		}
		return told
	}
	assert.Equal(t, lines("1: cuMemsetD8Async"), fill(blocking))
	r.must(t, r.driver.StreamSynchronize, blocking)
	n.taken()
	assert.Equal(t, lines("3: after 1", "3: cuMemsetD8Async"), fill(uintptr(legacyStream)))
	r.must(t, r.driver.StreamSynchronize, uintptr(legacyStream))
	n.taken()
	assert.Equal(t, lines("3: after 1", "3: cuMemsetD8Async"), fill(0), "another name of it")
	assert.Equal(t, lines("1: after 3", "1: cuMemsetD8Async"), fill(blocking))
	r.must(t, r.driver.StreamSynchronize, blocking)
	n.taken()
	assert.Equal(t, lines("4: after 3", "4: cuMemsetD8Async"), fill(uintptr(perThreadStream)))
	r.must(t, r.driver.CtxSynchronize)
	n.taken()
	assert.Equal(t, lines("2: cuMemsetD8Async"), fill(other))
	r.must(t, r.driver.StreamSynchronize, other)
	r.must(t, r.driver.StreamDestroy, blocking)
	n.taken()
	assert.Equal(t, lines("3: after 4", "3: after 1", "3: cuMemsetD8Async"), fill(uintptr(legacyStream)),
		"what a stream had that ended")
	r.must(t, r.driver.CtxSynchronize)
	n.taken()
	assert.Equal(t, lines("3: after 4", "3: cuMemsetD8Async"), fill(uintptr(legacyStream)), "once")
	r.must(t, r.driver.CtxSynchronize)
	r.must(t, r.driver.StreamDestroy, other)
	r.must(t, r.driver.MemFree, a)
}

func TestAHandleThatIsUsedAgainIsAnotherQueue(t *testing.T) {
	r, n := observedRig(t, settings{"HAMR_EMULATOR_REUSE": "1"})
	s := r.rawStream(t, nonBlocking)
	r.must(t, r.driver.StreamSynchronize, s)
	r.must(t, r.driver.StreamDestroy, s)
	again := r.rawStream(t, nonBlocking)
	require.Equal(t, s, again)
	n.taken()
	r.must(t, r.driver.StreamSynchronize, again)
	assert.Equal(t, lines("2: over", "2: over"), n.taken())
	r.must(t, r.driver.StreamDestroy, again)
}

// TestWorkThatGoesIntoAGraphIsNotToldOf has another stream come into the capture by an event.
func TestWorkThatGoesIntoAGraphIsNotToldOf(t *testing.T) {
	r, n := observedRig(t, nil)
	var capture struct {
		Begin   uintptr `dl:"cuStreamBeginCapture_v2"`
		End     uintptr `dl:"cuStreamEndCapture"`
		Destroy uintptr `dl:"cuGraphDestroy"`
	}
	require.NoError(t, dl.Bind(r.library, &capture))
	s, a, graph := r.rawStream(t, nonBlocking), r.rawMemory(t, 64), new([1]uintptr)
	n.taken()
	r.must(t, capture.Begin, s, 2)
	_ = r.try(r.driver.Memset8, a, 1, 1, s)
	assert.Empty(t, n.taken())
	r.must(t, capture.End, s, addressOf(graph))
	r.must(t, r.driver.Memset8, a, 1, 1, s)
	assert.Equal(t, lines("1: cuMemsetD8Async", line("  writes %#x 1", a)), n.taken())
	r.must(t, r.driver.StreamSynchronize, s)
	r.must(t, capture.Destroy, graph[0])
	r.must(t, r.driver.StreamDestroy, s)
	r.must(t, r.driver.MemFree, a)
}

// TestStreamsComeIntoACaptureByEvents tells the observer of calls that the emulator does not have in a capture.
func TestStreamsComeIntoACaptureByEvents(t *testing.T) {
	o, n, call := toldByHand(t)
	const first, second, event, address = 100, 200, 7, 0x1000
	fill := func(s uintptr) []string {
		call(220, []uintptr{address, 1, 1, s})
		return n.taken()
	}
	written := "  writes 0x1000 4"
	assert.Equal(t, lines("1: cuTest", written), fill(first))
	assert.Equal(t, lines("2: cuTest", written), fill(second))
	call(539, []uintptr{first, 0}) // begin
	assert.Empty(t, fill(first))
	call(119, []uintptr{event, first})     // record
	call(295, []uintptr{second, event, 0}) // wait
	assert.Empty(t, fill(second))
	call(119, []uintptr{event, second})
	assert.Empty(t, n.taken())
	call(497, []uintptr{first, 0}) // end
	assert.Equal(t, lines("1: cuTest", written), fill(first))
	assert.Equal(t, lines("2: cuTest", written), fill(second))
	call(119, []uintptr{event, second})
	assert.Equal(t, lines("2: record", "2: record"), n.taken())
	call(659, []uintptr{first, 0, 0}) // waits for a value
	assert.Equal(t, lines("1: after 1", "1: after 2"), sorted(n.taken()))
	call(514, []uintptr{9, first})
	assert.Equal(t, lines("1: cuTest"), n.taken(), "of a graph nothing else is known")
	_ = o
}

// TestWhatADestroyedStreamHadIsOverWithItsContext has a handle come again, too, of a stream that nobody told of.
func TestWhatADestroyedStreamHadIsOverWithItsContext(t *testing.T) {
	_, n, call := toldByHand(t)
	fill := []uintptr{0x1000, 1, 1, 100}
	call(220, fill)
	call(326, fill[3:])
	n.taken()
	call(17, fill)
	assert.Equal(t, lines("1: over"), n.taken())
	call(17, fill)
	assert.Empty(t, n.taken())
	call(220, fill)
	assert.Equal(t, lines("2: cuTest", "  writes 0x1000 4"), n.taken())
}

func sorted(list []string) []string {
	if len(list) == 2 && list[0] > list[1] {
		list[0], list[1] = list[1], list[0]
	}
	return list
}

// toldByHand is an observer over no driver: call tells it of one by its number, before and after.
func toldByHand(t *testing.T) (o *observer, n *noted, call func(number uint32, parameters []uintptr)) {
	n = &noted{}
	o, err := newObserver(emulate(t, nil).Backend, n)
	require.NoError(t, err)
	o.driver.StreamGetFlags = 0
	name, result, shared := append([]byte("cuTest"), 0), new(int32), new(uint64)
	return o, n, func(number uint32, parameters []uintptr) {
		require.Contains(t, observedCalls, number)
		for site := range uint32(2) {
			o.called(number, &callOf{site: site, function: &name[0], parameters: unsafe.Pointer(&parameters[0]), result: result,
				context: 1, shared: shared})
		}
	}
}

// TestCopiesOfBoxesReachFromTheirFirstByteToTheirLast reads CUDA_MEMCPY2D and CUDA_MEMCPY3D.
func TestCopiesOfBoxesReachFromTheirFirstByteToTheirLast(t *testing.T) {
	_, n, call := toldByHand(t)
	flat := make([]uintptr, 16)
	flat[0], flat[1], flat[2], flat[4], flat[6] = 3, 2, 2, 0x1000, 100 // x, y, of a device, where, pitch
	flat[7], flat[8], flat[9], flat[11], flat[13] = 1, 0, 4, 0x9000, 50
	flat[14], flat[15] = 10, 4
	call(289, []uintptr{addressOf(&flat[0]), 77})
	assert.Equal(t, lines("1: cuTest", line("  writes %#x %d", 0x9001, 160), line("  reads %#x %d", 0x1000+203, 310),
		"1: over"), n.taken(), "the driver does not know the target")
	deep := make([]uintptr, 25)
	deep[1], deep[2], deep[4], deep[6], deep[9], deep[10] = 1, 2, 2, 0x1000, 100, 5
	deep[15], deep[17], deep[20], deep[21] = 3, 0x9000, 50, 5 // an array
	deep[22], deep[23], deep[24] = 10, 2, 3
	call(291, []uintptr{addressOf(&deep[0]), 77})
	assert.Equal(t, lines("1: cuTest", line("  reads %#x %d", 0x1000+11*100, (2*5+1)*100+10)), n.taken())
	deep[23] = 0
	call(291, []uintptr{addressOf(&deep[0]), 77})
	assert.Equal(t, lines("1: cuTest"), n.taken())
	targets, sources, sizes := []uintptr{0x10, 0x20}, []uintptr{0x30, 0x40}, []uintptr{1, 2}
	call(796, []uintptr{addressOf(&targets[0]), addressOf(&sources[0]), addressOf(&sizes[0]), 2, 0, 0, 0, 77})
	assert.Equal(t, lines("1: cuTest", "  writes 0x10 1", "  reads 0x30 1", "  writes 0x20 2", "  reads 0x40 2"),
		n.taken())
	runtime.KeepAlive([][]uintptr{flat, deep, targets, sources, sizes})
}

// TestKernelsUseWhatTheirParametersMayPointTo has parameters one by one, and packed.
func TestKernelsUseWhatTheirParametersMayPointTo(t *testing.T) {
	o, n, call := toldByHand(t)
	const function = 5
	o.sizes[function] = []parameter{{0, 4}, {8, 8}, {16, 24}, {40, 200}}
	number, pointer := uint32(9), uintptr(0x1000)
	structure, large := [3]uintptr{0x2000, 0, 0x3000}, [25]uintptr{0x4000, 0x5000}
	parameters := []uintptr{addressOf(&number), addressOf(&pointer), addressOf(&structure), addressOf(&large)}
	want := lines("1: cuTest", "  uses 0x1000 1", "  uses 0x2000 1", "  uses 0x3000 1", "  uses 0x4000 1")
	grid := []uintptr{function, 1<<32 | 1, 1<<32 | 1, 1<<32 | 1, 0, 77}
	call(307, append(grid, addressOf(&parameters[0]), 0))
	assert.Equal(t, want, n.taken())
	config := [7]uintptr{4: 77}
	call(652, []uintptr{addressOf(&config), function, addressOf(&parameters[0]), 0})
	assert.Equal(t, want, n.taken())
	packed := make([]uintptr, 30) // 4 bytes and 4 between, 8, 24, 200
	packed[1], packed[2], packed[4], packed[5], packed[6] = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000
	size := uintptr(8 * len(packed))
	extra := []uintptr{1, addressOf(&packed[0]), 2, addressOf(&size), 0}
	call(307, append(grid, 0, addressOf(&extra[0])))
	assert.Equal(t, want, n.taken())
	runtime.KeepAlive([]any{&number, &pointer, &structure, &large, parameters, packed, &size, extra, &config})
}

func TestOurKernelsSayWhatTheyWrite(t *testing.T) {
	fill := []uintptr{0x1000, 64}
	assert.Equal(t, []backends.Touch{{Address: 0x1000, Size: 64, Writes: backends.DoesWrite}},
		touchesOfOurs("hamr_fill", addressOf(&fill[0])))
	run := []uintptr{1<<32 | 7, 0x1000, 0x2000, 48}
	assert.Equal(t, []backends.Touch{
		{Address: 0x1000, Size: 48, Writes: backends.DoesWrite}, {Address: 0x2000, Size: 48, Writes: backends.OnlyReads},
	}, touchesOfOurs("hamr_copy", addressOf(&run[0])))
	convert := []uintptr{0x1000, 0x2000}
	assert.Equal(t, []backends.Touch{
		{Address: 0x1000, Size: 1, Writes: backends.OnlyReads}, {Address: 0x2000, Size: 1, Writes: backends.DoesWrite},
	}, touchesOfOurs("hamr_convert", addressOf(&convert[0])))
	index, other := blockIndex{address: 0x5000, width: 4}, blockIndex{address: 0x6000, width: 8}
	check := &checkArgument{to: index, from: other, count: 1 << 29}
	assert.Equal(t, []backends.Touch{{Address: 0x5000, Size: 1 << 31, Writes: backends.OnlyReads},
		{Address: 0x6000, Size: 1 << 32, Writes: backends.OnlyReads}},
		touchesOfOurs(checkBlocksKernel, uintptr(unsafe.Pointer(check))))
	blocks := &blocksArgument{to: index, planes: 2, pairsOfPlane: kernelDimension{count: 5}}
	copy(blocks.room[:], []uint64{0x1000, 0x2000, 64, 64, 0x3000, 0x4000})
	assert.Equal(t, []backends.Touch{{Address: 0x5000, Size: 20, Writes: backends.OnlyReads},
		{Address: 0x1000, Size: 1, Writes: backends.DoesWrite}, {Address: 0x2000, Size: 1, Writes: backends.OnlyReads},
		{Address: 0x3000, Size: 1, Writes: backends.DoesWrite}, {Address: 0x4000, Size: 1, Writes: backends.OnlyReads},
	}, touchesOfOurs(copyIndexedKernel, uintptr(unsafe.Pointer(blocks))))
	runtime.KeepAlive([][]uintptr{fill, run, convert})
}

func TestThereIsOneWitnessAtATime(t *testing.T) {
	r := emulate(t, nil)
	stop, err := r.Observe(&noted{})
	require.NoError(t, err)
	_, err = r.Observe(&noted{})
	require.ErrorContains(t, err, "already")
	stop()
	stop, err = r.Observe(&noted{})
	require.NoError(t, err)
	stop()
}

func TestWithoutCUPTINobodyObserves(t *testing.T) {
	r := emulate(t, settings{CUPTISetting: "/nowhere/libcupti.so"})
	_, err := r.Observe(&noted{})
	require.ErrorIs(t, err, backends.ErrUnavailable)
	require.ErrorContains(t, err, "/nowhere/libcupti.so")
	assert.ErrorContains(t, err, "CUPTI")
}
