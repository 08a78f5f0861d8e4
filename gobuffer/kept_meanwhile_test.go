package gobuffer_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// duringTheCopy has something happen just when a temporary of a is filled.
func (w *world) duringTheCopy(a *gobuffer.Array, do func()) *gobuffer.Handle {
	w.t.Helper()
	done := false
	w.runtime.SetTrace(func(line string) {
		if strings.HasPrefix(line, "copy") && !done {
			done = true
			do()
		}
	})
	defer w.runtime.SetTrace(nil)
	h := w.ask(a, device0)
	assert.True(w.t, done)
	return h
}

func TestWhatChangesDuringTheCopyIsNotKept(t *testing.T) {
	for name, change := range map[string]func(w *world, same *gobuffer.Array) func() error{
		"Changed": func(_ *world, same *gobuffer.Array) func() error {
			require.NoError(t, same.Changed())
			return same.Synchronize
		},
		"Fill": func(w *world, same *gobuffer.Array) func() error { w.setSeven(same); return same.Synchronize },
		"an access that writes": func(w *world, same *gobuffer.Array) func() error {
			return users[0].lend(t, same, gobuffer.ReadWrite).Release
		},
	} {
		w := newWorld(t, 1, late)
		a := cached(w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before))
		same := w.slice(a, 0, 6, 1)
		var end func() error
		h := w.duringTheCopy(a, func() { end = change(w, same) })
		assert.False(t, h.Kept(), name)
		assert.Zero(t, w.keptBytes(), name)
		require.NoError(t, end())
		require.NoError(t, h.Release())
		closeAll(t, a, same)
	}
}

func TestOfTwoCopiesAtATimeOneIsKept(t *testing.T) {
	w := newWorld(t, 1, late)
	a := cached(w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before))
	var other *gobuffer.Handle
	h := w.duringTheCopy(a, func() { other = w.ask(a, device0) })
	assert.True(t, other.Kept())
	assert.False(t, h.Kept() || h.ReadOnly(), "this one's own")
	assert.EqualValues(t, 24, w.keptBytes())
	w.holds(h, device0, before)
	w.holds(other, device0, before)
	require.NoError(t, errors.Join(h.Release(), other.Release()))
	closeAll(t, a)
}

// Whoever reads while another writes has the one or the other; who reads afterwards, the last.
func TestThreadsShareWhatIsKept(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{FreeWaits: true, LateMemory: true, MaxDelay: 1000})
	a := cached(w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before))
	var all sync.WaitGroup
	read := func(n int) {
		for range n {
			h, err := a.Access(backends.SpaceCUDA, 0)
			if assert.NoError(t, err) {
				assert.NoError(t, h.Release())
			}
		}
	}
	for v := range 30 {
		one := w.scalar(arrayiface.Int32, v)
		for range 3 {
			all.Add(1)
			go func() { defer all.Done(); read(5) }()
		}
		all.Wait()
		all.Add(1)
		b := w.slice(a, 0, 6, 1)
		go func() { defer all.Done(); read(3) }()
		require.NoError(t, a.Changed()) // at the same time as one who asks
		all.Wait()
		require.NoError(t, b.Fill(one))
		h := w.ask(a, device0)
		w.holds(h, device0, numbers(v, v, v, v, v, v), fmt.Sprint(v))
		require.NoError(t, w.cuda.Synchronize(0, h.Stream()))
		require.NoError(t, h.Release())
		closeAll(t, one, b)
	}
	closeAll(t, a)
}
