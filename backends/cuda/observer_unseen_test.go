package cuda

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// Streams that are used by hand, and their queues: 77 and 78 are the first and the second.
func twoStreams(t *testing.T) (n *noted, call func(number uint32, parameters ...uintptr)) {
	_, n, told := toldByHand(t)
	call = func(number uint32, parameters ...uintptr) { told(number, parameters) }
	call(216, 0x1000, 0, 100, 77)
	call(216, 0x2000, 0, 100, 78)
	n.taken()
	return n, call
}

// TestWhatSignalsIsTakenForOver has what lets a thread know how far a stream has come, without its asking the driver.
func TestWhatSignalsIsTakenForOver(t *testing.T) {
	n, call := twoStreams(t)
	for _, number := range []uint32{346, 437, 527, 528, 831, 832, 460, 461, 475, 476, 663, 664, 665, 666} {
		call(number, 77)
		assert.Equal(t, lines("1: over", "1: over"), n.taken(),
			"%d: before, as who learns of it may be quicker than the call, and after", number)
	}
	call(490, 0, 0, 1, 78)
	assert.Equal(t, lines("2: over", "2: over"), n.taken())
	call(667, 77)
	assert.Equal(t, []string{"1: after 1", "1: after 2"}, sorted(n.taken()[:2]), "it may wait, too")
}

func TestAnEventThatOthersRecordStandsForAnyWork(t *testing.T) {
	handle := [1]uintptr{0xe7}
	parameters := [4]uintptr{nodeOfEvent, 0, 0xe7}
	attributes := [18]uintptr{1, 9: launchCompletionEvent, 10: 0xe7}
	for name, record := range map[string]func(call func(number uint32, parameters ...uintptr)){
		"another process": func(call func(uint32, ...uintptr)) { call(335, addressOf(&handle)) },
		"a graph":         func(call func(uint32, ...uintptr)) { call(589, 0, 0, 0, 0, 0xe7) },
		"a graph's node":  func(call func(uint32, ...uintptr)) { call(712, 0, 0, 0, 0, addressOf(&parameters)) },
		"a new one":       func(call func(uint32, ...uintptr)) { call(593, 0, 0xe7) },
		"one of many":     func(call func(uint32, ...uintptr)) { call(595, 0, 0, 0xe7) },
		"a kernel": func(call func(uint32, ...uintptr)) {
			config := [7]uintptr{4: 77, 5: addressOf(&attributes), 6: 2}
			call(652, addressOf(&config), 5, 0, 0)
			runtime.KeepAlive(&config)
		},
		"a captured call": func(call func(uint32, ...uintptr)) { call(495, 77); call(587, 0xe7, 77, 1); call(497, 77) },
	} {
		t.Run(name, func(t *testing.T) {
			n, call := twoStreams(t)
			record(call)
			n.taken()
			call(295, 78, 0xe7)
			told := n.taken()
			assert.Equal(t, "2: wait", told[0])
			assert.ElementsMatch(t, []string{"2: after 1", "2: after 2"}, told[1:])
			call(121, 0xe7)
			assert.ElementsMatch(t, []string{"reached", "1: over", "2: over"}, n.taken())
			call(123, 0, 0xe8, 0xe7)
			assert.ElementsMatch(t, []string{"reached", "reached", "1: over", "2: over"}, n.taken())
			call(325, 0xe7)
			call(121, 0xe7)
			assert.Equal(t, lines("forgotten", "reached"), n.taken(), "another one by that handle")
		})
	}
	runtime.KeepAlive([]any{&handle, &parameters, &attributes})
}

func TestAContextIsRecordedAndWaitsAsAWhole(t *testing.T) {
	for _, number := range []uint32{755, 749} {
		n, call := twoStreams(t)
		call(number, 1, 0xe7)
		told := n.taken()
		assert.ElementsMatch(t, []string{"3: after 1", "3: after 2"}, told[:2])
		assert.Equal(t, lines("3: record", "3: closed"), told[2:])
		call(number+1, 1, 0xe7)
		assert.ElementsMatch(t, []string{"1: wait", "2: wait"}, n.taken())
		call(800, 1)
		assert.ElementsMatch(t, []string{"1: over", "2: over", "3: over"}, n.taken())
		call(800, 2)
		assert.Empty(t, n.taken(), "another context")
	}
}

// TestAGraphThatMayHaveMoreIsInOrderWithAll has one that may wait for events or signal something, once that was
// captured or added.
func TestAGraphThatMayHaveMoreIsInOrderWithAll(t *testing.T) {
	parameters, waits := [1]uintptr{nodeOfHost}, [1]uintptr{nodeWaitsForEvent}
	for name, add := range map[string]func(call func(number uint32, parameters ...uintptr)){
		"captured":          func(call func(uint32, ...uintptr)) { call(495, 78); call(527, 78); call(497, 78) },
		"added":             func(call func(uint32, ...uintptr)) { call(530) },
		"waits":             func(call func(uint32, ...uintptr)) { call(495, 78); call(295, 78, 0xe7, 1); call(497, 78) },
		"a value":           func(call func(uint32, ...uintptr)) { call(495, 78); call(458, 78); call(497, 78) },
		"waits, added":      func(call func(uint32, ...uintptr)) { call(590) },
		"a node that waits": func(call func(uint32, ...uintptr)) { call(712, 0, 0, 0, 0, addressOf(&waits)) },
		"a node":            func(call func(uint32, ...uintptr)) { call(723, 0, 0, 0, 0, 0, addressOf(&parameters)) },
	} {
		n, call := twoStreams(t)
		call(514, 5, 77)
		assert.Equal(t, lines("1: cuTest"), n.taken())
		add(func(number uint32, parameters ...uintptr) { call(number, append(parameters, 0)...) })
		n.taken()
		call(514, 5, 77)
		told := n.taken()
		assert.ElementsMatch(t, []string{"1: after 1", "1: after 2"}, told[:2], name)
		assert.Equal(t, lines("1: cuTest", "1: over"), told[2:], name)
	}
	runtime.KeepAlive([]any{&parameters, &waits})
}

func TestANullContextIsTheCurrentOne(t *testing.T) {
	n, call := twoStreams(t)
	call(800, 0)
	assert.ElementsMatch(t, []string{"1: over", "2: over"}, n.taken())
	call(743, 0)
	call(800, 5)
	assert.ElementsMatch(t, []string{"1: over", "2: over"}, n.taken(), "of the whole device, for those of its parts")
}

func TestAContextThatEndsHasWaitedForAll(t *testing.T) {
	for _, number := range []uint32{322, 387, 544, 389, 545} {
		o, n, told := toldByHand(t)
		o.sizes[5] = []parameter{{0, 8}}
		told(216, []uintptr{0x1000, 0, 100, 77})
		n.taken()
		told(number, []uintptr{1})
		assert.Equal(t, lines("1: over"), n.taken())
		assert.Empty(t, o.sizes, "the handles of its kernels may be others' next")
	}
}

func TestWhatADestroyedStreamHasCountsAmongAny(t *testing.T) {
	n, call := twoStreams(t)
	call(335, addressOf(&[1]uintptr{0xe7}))
	call(326, 77)
	n.taken()
	call(295, 78, 0xe7)
	assert.ElementsMatch(t, []string{"2: wait", "2: after 1", "2: after 2"}, n.taken())
	call(121, 0xe7)
	assert.ElementsMatch(t, []string{"reached", "1: over", "2: over"}, n.taken())
}

func TestAnEventForOtherProcessesSignals(t *testing.T) {
	n, call := twoStreams(t)
	call(334, 0, 0xe7)
	call(119, 0xe7, 77)
	assert.Equal(t, lines("1: record", "1: over", "1: record", "1: over"), n.taken())
}

func TestMemoryInTheOrderOfAStreamIsMade(t *testing.T) {
	n, call := twoStreams(t)
	at := [1]uintptr{0x4000}
	for _, number := range []uint32{598, 599, 611, 612} {
		call(number, addressOf(&at), 100)
		assert.Equal(t, lines("made 0x4000 100"), n.taken())
	}
	runtime.KeepAlive(&at)
}

// TestWhatTheDriverRefusesIsNotLookedAt has addresses that are none.
func TestWhatTheDriverRefusesIsNotLookedAt(t *testing.T) {
	_, call := twoStreams(t)
	for _, number := range []uint32{652, 289, 291, 287, 712, 307, 796} {
		call(number, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	}
}

func TestPackedParametersAreWhereTheDriverSays(t *testing.T) {
	o, n, told := toldByHand(t)
	o.sizes[5] = []parameter{{0, 4}, {16, 16}, {32, 8}} // float, double2, float *
	packed := [6]uintptr{1, 0, 0x2222, 0x3333, 0xabcd000, 0}
	extra := [5]uintptr{1, addressOf(&packed), 2, 0, 0}
	told(307, []uintptr{5, 0, 0, 0, 0, 77, 0, addressOf(&extra)})
	assert.Equal(t, lines("1: cuTest", "  uses 0x2222 1", "  uses 0x3333 1", "  uses 0xabcd000 1"), n.taken())
	runtime.KeepAlive([]any{&packed, &extra})
}

// TestStreamsOfThreadsThatHaveEndedAreForgotten has each thread's default stream for a time.
func TestStreamsOfThreadsThatHaveEndedAreForgotten(t *testing.T) {
	o, _, _ := toldByHand(t)
	for thread := range 1000 {
		o.mutex.Lock()
		o.newQueue(streamOf{handle: perThreadStream, context: 1, thread: 1<<30 + thread}, 1, true)
		o.mutex.Unlock()
	}
	assert.Less(t, len(o.queues), 70)
	assert.Less(t, len(o.legacy[1].others), 70)
}

// TestAStreamIsAskedForWhatNobodyWasTold has streams whose making was not told of, with another context current.
func TestAStreamIsAskedForWhatNobodyWasTold(t *testing.T) {
	r := emulate(t, nil)
	v, err := r.enter(0, defaultStream)
	require.NoError(t, err)
	defer v.leave()
	own, err := r.Context(0)
	require.NoError(t, err)
	o, err := newObserver(r.Backend, &noted{})
	require.NoError(t, err)
	for _, flags := range []uintptr{0, nonBlocking} {
		s := r.rawStream(t, flags)
		blocking, context, capturing := o.asked(backends.Stream(s), own+1)
		assert.Equal(t, []any{flags == 0, own, false}, []any{blocking, context, capturing})
		r.must(t, r.driver.StreamDestroy, s)
	}
}
