package backendtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// testForeignWork has another library work on the stream between the backend's calls: each
// call runs after what is there, and before what comes later, though the queue be out of
// order.
func (s suite) testForeignWork(t *testing.T) {
	launcher, ok := backends.As[Launcher](s.b)
	if !ok {
		return
	}
	const size, rounds = 1000, 20
	stream, other, event := s.newStream(t), s.newStream(t), s.newEvent(t)
	source, target := s.allocate(t, size, true, stream), s.allocate(t, size, true, stream)
	s.wait(t, stream)
	ran := 0
	launch := func(on backends.Stream, work func(source, target []byte)) {
		t.Helper()
		require.NoError(t, launcher.Launch(s.context, on, func(memory func(backends.Address, int) []byte) {
			work(memory(source.Address, size), memory(target.Address, size))
			ran++
		}))
	}
	for i := range rounds {
		launch(stream, func(source, _ []byte) { fill(source, byte(2*i)) })
		s.copy(t, target, source, size, stream)
		launch(stream, func(source, target []byte) {
			equal(t, repeated(byte(2*i), size), target, "what was there before the copy")
			fill(source, byte(2*i+1))
		})
		require.NoError(t, s.b.Fill(target, []byte{0xAA}, size/2, stream))
		launch(stream, func(_, target []byte) { assert.EqualValues(t, 0xAA, target[0], "a fill before the kernel") })
	}
	launch(stream, func(source, _ []byte) { fill(source, 0x55) })
	require.NoError(t, s.streams.Record(s.context, event, stream))
	require.NoError(t, s.streams.Wait(s.context, other, event))
	launch(other, func(source, _ []byte) {
		equal(t, repeated(0x55, size), source, "after the event")
		fill(source, 0x66)
	})
	s.copy(t, target, source, size, other)
	equal(t, repeated(0x66, size), s.read(t, target, size, other), "copied after the kernel")
	require.NoError(t, s.streams.SynchronizeEvent(s.context, event))
	assert.Equal(t, 3*rounds+2, ran)

	launch(stream, func([]byte, []byte) {})
	require.NoError(t, s.streams.Record(s.context, event, stream))
	require.NoError(t, s.streams.SynchronizeEvent(s.context, event))
	assert.Equal(t, 3*rounds+3, ran, "an event stands for others' work, too")
	launch(stream, func([]byte, []byte) {})
	within(t, func() (bool, error) { return s.streams.Idle(s.context, stream) })
	assert.Equal(t, 3*rounds+4, ran, "an idle stream has done others' work, too")
}

func fill(data []byte, value byte) {
	for i := range data {
		data[i] = value
	}
}
