package hetero_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/hetero"
)

var (
	modelSeed   = flag.Uint64("model.seed", 1, "of the first walk")
	modelRuns   = flag.Int("model.runs", 30, "how many walks")
	modelSteps  = flag.Int("model.steps", 150, "of each walk")
	modelFaults = flag.Int("model.faults", 0,
		"per cent of steps before which a call is made to fail; 0: every second walk, 10")
)

// walk is a plain model of who has which stream, beside the real thing.
type walk struct {
	*testing.T
	random    *rand.Rand
	device    *checked
	scheduler *hetero.Scheduler
	runtime   *gobuffer.Runtime
	choosers  []*hetero.Chooser
	memory    *hetero.CachingAllocator
	faults    int

	tokens   []*hetero.Token
	contexts []*modelContext
	products []*modelProduct
	blocks   []*modelBlock
	told     []<-chan error
	tenants  map[backends.Stream]*modelContext // the latest context of each stream
	freed    map[backends.Address][]record     // until when a block was in use that was given back
}

type modelContext struct {
	*hetero.Context
	after []record // what its work must find done
}

type modelProduct struct {
	*hetero.Product[int]
	by     *modelContext
	when   record
	value  int
	failed bool // its work is said to have
}

type modelBlock struct {
	*hetero.Block
	by *modelContext
}

func TestModel(t *testing.T) {
	for i := range *modelRuns {
		seed, faults := *modelSeed+uint64(i), *modelFaults
		if faults == 0 && i%2 == 1 {
			faults = 10
		}
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { newWalk(t, seed, faults).run(*modelSteps) }) {
			t.Fatalf("repeat it: go test ./hetero -run TestModel -model.seed=%d -model.runs=1 -model.steps=%d -model.faults=%d",
				seed, *modelSteps, max(faults, 0))
		}
	}
}

func newWalk(t *testing.T, seed uint64, faults int) *walk {
	t.Setenv(hetero.AcceleratorsSetting, "")
	o := late
	o.Devices, o.Memory = 1+int(seed)%2, 1<<20
	o.ReuseHandles = faults == 0 // a stream of failed work is destroyed, and its kernels run later
	w := &walk{
		T: t, random: rand.New(rand.NewPCG(seed, 0)), device: newChecked(o), faults: faults,
		tenants: map[backends.Stream]*modelContext{}, freed: map[backends.Address][]record{},
	}
	r, err := gobuffer.NewRuntime(w.device)
	require.NoError(t, err)
	w.runtime, w.scheduler = r, hetero.New(r)
	for _, p := range []hetero.Policy{hetero.RoundRobin, hetero.FreeMemory, hetero.LeastPending} {
		c, err := w.scheduler.NewChooser(hetero.ChooserOptions{Policy: p})
		require.NoError(t, err)
		w.choosers = append(w.choosers, c)
	}
	// An allocator of memory that keeps the order of a stream in every second walk.
	kind := []backends.Allocator{backends.CUDA, backends.CUDAAsync}[seed/2%2]
	w.memory, err = w.scheduler.NewCachingAllocator(hetero.CachingAllocatorOptions{Allocator: kind, Limit: 8 << 10})
	require.NoError(t, err)
	return w
}

func (w *walk) run(steps int) {
	actions := []func(){
		w.choose, w.begin, w.begin, w.beginNext, w.beginNext, w.beginNext, w.wrap, w.wrap, w.wrap, w.get, w.get, w.get,
		w.work,
		w.work, w.work, w.finishOne, w.finishOne, w.releaseToken, w.end, w.end, w.releaseProduct, w.await, w.trim, w.allocate,
		w.allocate, w.free, w.free,
	}
	for range steps {
		if w.random.IntN(100) < w.faults {
			calls := []string{"NewStream", "NewEvent", "Record", "Wait", "Done", "Idle", "DestroyStream", "DestroyEvent",
				"Allocate"}
			w.device.FailAt(calls[w.random.IntN(len(calls))], 1+w.random.IntN(3), errInjected)
		}
		actions[w.random.IntN(len(actions))]()
		if w.Failed() {
			return
		}
	}
	w.settle()
}

// settle ends everything, and looks whether all is there again.
func (w *walk) settle() {
	w.device.StopFailing()
	w.device.Finish()
	for _, told := range w.told {
		if err := receive(w, told); err != nil && !errors.Is(err, context.Canceled) {
			require.ErrorIs(w, err, errInjected)
		}
	}
	for _, p := range w.products {
		require.NoError(w, p.Release())
	}
	for _, b := range w.blocks {
		require.NoError(w, b.Free())
	}
	for _, c := range w.contexts {
		require.NoError(w, c.End())
	}
	for _, token := range w.tokens {
		require.NoError(w, token.Release())
	}
	w.device.Finish()
	require.NoError(w, w.memory.Close())
	require.NoError(w, w.runtime.ReleasePostponed())
	w.device.Finish()
	assert.Zero(w, w.memory.Stats().Live+w.memory.Stats().Cached)
	require.NoError(w, w.scheduler.Trim())
	for _, c := range w.scheduler.CacheStatistics() {
		assert.Zero(w, c.Streams.Out+c.Streams.Kept+c.Events.Out+c.Events.Kept, "%+v", c)
	}
	w.device.AssertClean(w)
	streams, events := w.device.LiveHandles()
	assert.Zero(w, streams)
	assert.LessOrEqual(w, events, w.device.stay, "the caches have none: gobuffer's, whose end failed")
	assert.Empty(w, w.device.breaches)
	if w.faults == 0 {
		assert.Empty(w, w.device.needless)
	}
}

// ok reports whether a step succeeded: only what was injected may fail.
func (w *walk) ok(err error) bool {
	if err != nil {
		require.ErrorIs(w, err, errInjected)
	}
	return err == nil
}

func pick[T any](w *walk, list []T) (x T, some bool) {
	if len(list) == 0 {
		return x, false
	}
	return list[w.random.IntN(len(list))], true
}

func take[T any](w *walk, list *[]T) (x T, some bool) {
	if len(*list) == 0 {
		return x, false
	}
	i := w.random.IntN(len(*list))
	x = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return x, true
}

// fresh checks that a stream of nobody's is handed out, and that it has no work.
func (w *walk) fresh(s backends.Stream) {
	used := slices.ContainsFunc(w.tokens, func(t *hetero.Token) bool { return t.Stream() == s }) ||
		slices.ContainsFunc(w.contexts, func(c *modelContext) bool { return c.Stream() == s }) ||
		slices.ContainsFunc(w.products, func(p *modelProduct) bool { return p.Stream() == s }) ||
		slices.ContainsFunc(w.blocks, func(b *modelBlock) bool { return b.by.Stream() == s })
	assert.False(w, used, "stream %#x is somebody's", s)
	assert.True(w, w.device.over(w.device.now(s)), "stream %#x has work", s)
}

func (w *walk) choose() {
	chooser, _ := pick(w, w.choosers)
	if token, err := chooser.Choose(w.random.IntN(10)); w.ok(err) {
		w.fresh(token.Stream())
		w.tokens = append(w.tokens, token)
	}
}

func (w *walk) begin() {
	if token, some := pick(w, w.tokens); some {
		ctx, err := w.scheduler.Begin(token)
		require.NoError(w, err)
		assert.Equal(w, token.Stream(), ctx.Stream())
		w.begun(ctx)
	}
}

func (w *walk) begun(ctx *hetero.Context) {
	made := &modelContext{Context: ctx}
	w.tenants[ctx.Stream()] = made
	w.contexts = append(w.contexts, made)
}

func (w *walk) beginNext() {
	p, some := pick(w, w.products)
	if !some {
		return
	}
	ctx, err := w.scheduler.Begin(p.Product)
	if !w.ok(err) {
		return
	}
	assert.Equal(w, p.Place(), ctx.Place())
	if w.tenants[p.Stream()] == p.by {
		assert.Equal(w, p.Stream(), ctx.Stream(), "it takes over the stream")
	} else {
		w.fresh(ctx.Stream())
	}
	w.begun(ctx)
}

func (w *walk) wrap() {
	if ctx, some := pick(w, w.contexts); some {
		value := w.random.Int()
		if p, err := hetero.Wrap(ctx.Context, value); w.ok(err) {
			w.products = append(w.products, &modelProduct{Product: p, by: ctx, when: w.device.now(ctx.Stream()), value: value})
		}
	}
}

func (w *walk) get() {
	ctx, some := pick(w, w.contexts)
	p, any := pick(w, w.products)
	if !some || !any {
		return
	}
	before := w.device.CallCount("Wait")
	value, err := hetero.Get(ctx.Context, p.Product)
	waits := w.device.CallCount("Wait") - before
	var mismatch *hetero.DeviceMismatchError
	switch {
	case p.failed:
		require.ErrorIs(w, err, errInjected)
	case ctx.Place() != p.Place():
		require.ErrorAs(w, err, &mismatch)
	case err != nil:
		_, failed := p.Pending()
		p.failed = failed != nil
		w.ok(err)
	default:
		assert.Equal(w, p.value, value)
		if ctx.Stream() == p.Stream() {
			assert.Zero(w, waits)
		} else if !w.device.over(p.when) {
			assert.Equal(w, 1, waits)
		}
		ctx.after = append(ctx.after, p.when)
	}
}

func (w *walk) work() {
	if ctx, some := pick(w, w.contexts); some {
		require.NoError(w, w.device.launch(ctx.Place().Device, ctx.Stream(), ctx.after...))
	}
}

// finishOne lets the device come to the end of a stream.
func (w *walk) finishOne() {
	if ctx, some := pick(w, w.contexts); some {
		require.NoError(w, w.device.Fake.Synchronize(ctx.Place().Device, ctx.Stream()))
	}
}

func (w *walk) releaseToken() {
	if token, some := take(w, &w.tokens); some {
		require.NoError(w, token.Release())
	}
}

func (w *walk) end() {
	if ctx, some := take(w, &w.contexts); some {
		require.NoError(w, ctx.End())
	}
}

func (w *walk) releaseProduct() {
	if p, some := take(w, &w.products); some {
		w.ok(p.Release())
	}
}

func (w *walk) await() {
	ctx, some := pick(w, w.contexts)
	if !some || w.faults > 0 { // whose call fails then, the goroutine that looks has a say in
		return
	}
	until, cancel := context.WithCancel(context.Background())
	w.told = append(w.told, ctx.Done(until))
	if p, some := pick(w, w.products); some {
		w.told = append(w.told, p.Done(context.Background()))
	}
	if w.random.IntN(2) == 0 {
		cancel()
	} else {
		w.Cleanup(cancel)
	}
}

func (w *walk) trim() { w.ok(errors.Join(w.scheduler.Trim(), w.memory.Trim())) }

func (w *walk) allocate() {
	ctx, some := pick(w, w.contexts)
	if !some {
		return
	}
	size := 1 + w.random.IntN(1024)
	b, err := w.memory.Allocate(ctx.Context, size)
	var mismatch *hetero.DeviceMismatchError
	if ctx.Place().Device != 0 {
		require.ErrorAs(w, err, &mismatch)
		return
	}
	if !w.ok(err) {
		return
	}
	assert.Equal(w, size, b.Size())
	for _, r := range w.freed[b.Region().Address] {
		assert.True(w, r.stream == ctx.Stream() || w.device.over(r), "a block is in use on %#x", r.stream)
	}
	delete(w.freed, b.Region().Address)
	w.blocks = append(w.blocks, &modelBlock{b, ctx})
}

func (w *walk) free() {
	b, some := take(w, &w.blocks)
	if !some {
		return
	}
	at := b.Region().Address
	w.freed[at] = []record{w.device.now(b.by.Stream())}
	var users []*hetero.Context
	if ctx, some := pick(w, w.contexts); some && ctx.Place().Device == 0 {
		users = append(users, ctx.Context)
		w.freed[at] = append(w.freed[at], w.device.now(ctx.Stream()))
	}
	w.ok(b.Free(users...))
}
