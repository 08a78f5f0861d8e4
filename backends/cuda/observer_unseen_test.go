package cuda

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
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
		assert.Equal(t, lines("1: over"), n.taken(), "%d", number)
	}
	call(490, 0, 0, 1, 78)
	assert.Equal(t, lines("2: over"), n.taken())
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

// TestAGraphThatMaySignalIsTakenForOver has one that may, once a host function was captured or added.
func TestAGraphThatMaySignalIsTakenForOver(t *testing.T) {
	parameters := [1]uintptr{nodeOfHost}
	for name, add := range map[string]func(call func(number uint32, parameters ...uintptr)){
		"captured": func(call func(uint32, ...uintptr)) { call(495, 78); call(527, 78); call(497, 78) },
		"added":    func(call func(uint32, ...uintptr)) { call(530) },
		"a node":   func(call func(uint32, ...uintptr)) { call(723, 0, 0, 0, 0, 0, addressOf(&parameters)) },
	} {
		n, call := twoStreams(t)
		call(514, 5, 77)
		assert.Equal(t, lines("1: cuTest"), n.taken())
		add(func(number uint32, parameters ...uintptr) { call(number, append(parameters, 0)...) })
		n.taken()
		call(514, 5, 77)
		assert.Equal(t, lines("1: cuTest", "1: over"), n.taken(), name)
	}
	runtime.KeepAlive(&parameters)
}
