package hetero_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
	"hamr/hetero"
)

// memoryWalk is a plain model of who may use which memory of a CachingAllocator, when streams come and
// go whose handles are the same.
type memoryWalk struct {
	*testing.T
	random    *rand.Rand
	device    *backendtest.Fake
	scheduler *hetero.Scheduler
	allocator *hetero.CachingAllocator

	streams []*modelStream
	used    []*modelMemory
	freed   map[backends.Address]*modelMemory
}

// modelStream is a stream with what was enqueued there: whether each kernel has run.
type modelStream struct {
	handle  backends.Stream
	kernels []*bool
}

type modelMemory struct {
	*gobuffer.Memory
	home   *modelStream // on which it goes back
	before []*bool      // who had it before: all done when its first kernel runs
	since  []*bool      // who has used it on other streams since
}

func over(kernels []*bool) bool {
	for _, run := range kernels {
		if !*run {
			return false
		}
	}
	return true
}

func TestModelOfMemoryOnManyStreams(t *testing.T) {
	for i := range *modelRuns {
		seed := *modelSeed + uint64(i)
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { walkMemory(t, seed, *modelSteps) }) {
			t.Fatalf("repeat it: go test ./hetero -run TestModelOfMemory -model.seed=%d -model.runs=1 -model.steps=%d", seed,
				*modelSteps)
		}
	}
}

func walkMemory(t *testing.T, seed uint64, steps int) {
	o := late
	o.ReuseHandles, o.Reuses, o.LateMemory = true, true, true
	w := &memoryWalk{
		T: t, random: rand.New(rand.NewPCG(seed, 1)), device: backendtest.NewFake(o),
		freed: map[backends.Address]*modelMemory{},
	}
	r, err := gobuffer.NewRuntime(w.device)
	require.NoError(t, err)
	require.NoError(t, w.device.Probe())
	byDefault, err := w.device.Resolve(0, 0)
	require.NoError(t, err)
	w.streams = []*modelStream{{handle: byDefault}}
	w.scheduler = hetero.New(r)
	kind := []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAHost}[seed%3]
	w.allocator, err = w.scheduler.NewCachingAllocator(hetero.CachingAllocatorOptions{Allocator: kind, Limit: 4 << 10})
	require.NoError(t, err)
	actions := []func(){w.begin, w.end, w.allocate, w.allocate, w.allocate, w.work, w.work, w.work, w.elsewhere, w.release,
		w.release, w.finish, w.trim}
	for range steps {
		actions[w.random.IntN(len(actions))]()
		if t.Failed() {
			return
		}
	}
	for len(w.used) > 0 {
		w.release()
	}
	for len(w.streams) > 1 {
		w.end()
	}
	require.NoError(t, w.allocator.Close())
	w.device.Finish()
	require.Eventually(t, func() bool { n, _ := w.device.Live(); return n == 0 }, patience, patience/10000)
	assert.Zero(t, w.device.CallCount("SynchronizeEvent")+w.device.CallCount("SynchronizeDevice"))
	w.device.AssertClean(t)
}

func (w *memoryWalk) anyStream() *modelStream { return w.streams[w.random.IntN(len(w.streams))] }

func (w *memoryWalk) begin() {
	handle, err := w.device.NewStream(0)
	require.NoError(w, err)
	w.streams = append(w.streams, &modelStream{handle: handle})
}

// end has memory go back on the default stream that would have on this one, with the work it has now.
func (w *memoryWalk) end() {
	if len(w.streams) == 1 {
		return
	}
	i := 1 + w.random.IntN(len(w.streams)-1)
	s := w.streams[i]
	w.streams = append(w.streams[:i:i], w.streams[i+1:]...)
	for _, m := range w.used {
		if m.home == s {
			require.NoError(w, m.Forget(s.handle))
			m.since, m.home = append(append(m.since, s.kernels...), m.before...), w.streams[0]
			m.before = nil // kernels of nobody's knowledge there are the program's to order
		}
	}
	require.NoError(w, w.scheduler.ForgetStream(s.handle))
	require.NoError(w, w.device.DestroyStream(0, s.handle))
}

func (w *memoryWalk) allocate() {
	s := w.anyStream()
	size := 1 + w.random.IntN(1024)
	m, err := w.allocator.Memory(s.handle, size)
	require.NoError(w, err)
	made := &modelMemory{Memory: m, home: s}
	if before := w.freed[m.Region().Address]; before != nil {
		assert.True(w, before.home == s || over(before.since), "the memory is in use on %#x", before.home.handle)
		made.before = before.since
		delete(w.freed, m.Region().Address)
	}
	w.used = append(w.used, made)
}

// work has a kernel use memory on its own stream, which must find all earlier users' done.
func (w *memoryWalk) work() {
	if m, some := pickOf(w, w.used); some {
		w.launch(m.home, m.before)
	}
}

func (w *memoryWalk) launch(s *modelStream, after []*bool) {
	run := new(bool)
	s.kernels = append(s.kernels, run)
	require.NoError(w, w.device.Launch(0, s.handle, func(func(backends.Address, int) []byte) {
		*run = true
		assert.True(w, over(after), "a kernel runs on %#x before others that have used its memory", s.handle)
	}))
}

// elsewhere has somebody use memory on another stream, and say so.
func (w *memoryWalk) elsewhere() {
	if m, some := pickOf(w, w.used); some {
		s := w.anyStream()
		w.launch(s, nil)
		require.NoError(w, m.Leave(s.handle))
		m.since = append(m.since, s.kernels...)
	}
}

func (w *memoryWalk) release() {
	if len(w.used) == 0 {
		return
	}
	i := w.random.IntN(len(w.used))
	m := w.used[i]
	w.used = append(w.used[:i:i], w.used[i+1:]...)
	m.since = append(m.since, m.home.kernels...)
	w.freed[m.Region().Address] = m
	require.NoError(w, m.Release())
}

func (w *memoryWalk) finish() {
	require.NoError(w, w.device.Synchronize(0, w.anyStream().handle))
}

func (w *memoryWalk) trim() { require.NoError(w, w.allocator.Trim()) }

func pickOf(w *memoryWalk, list []*modelMemory) (m *modelMemory, some bool) {
	if len(list) == 0 {
		return nil, false
	}
	return list[w.random.IntN(len(list))], true
}
