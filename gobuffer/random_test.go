package gobuffer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

const randomSteps = 150

// TestRandomOperationsAgreeWithAModel does the same random changes to a buffer,
// on every allocator, and to a Go slice. The devices are late, in the second run
// at random.
func TestRandomOperationsAgreeWithAModel(t *testing.T) {
	for name, o := range map[string]backendtest.FakeOptions{"manual": late, "random": {},
		"synchronous":      {Synchronous: true},
		"through the host": {Manual: true, Strict: true, NoConvert: true}} {
		for _, devices := range []int{1, 2, 4} {
			for _, p := range places(devices) {
				seed := rand.Uint64()
				t.Run(fmt.Sprintf("%s %d devices %s", name, devices, p), func(t *testing.T) {
					defer func() {
						if t.Failed() {
							t.Logf("seed %d", seed)
						}
					}()
					w := newWorld(t, devices, o)
					walk(w, rand.New(rand.NewPCG(seed, 0)), places(devices), p)
				})
			}
		}
	}
}

type walker struct {
	*world
	random *rand.Rand
	places []place
	a      *gobuffer.Array
	want   []int32
	views  []*gobuffer.Array // alive for a while, to share a's memory
}

func walk(w *world, random *rand.Rand, all []place, start place) {
	r := &walker{world: w, random: random, places: all}
	r.a = w.array(start.options(gobuffer.Transfer(random.IntN(3))), numbers())
	for step := range randomSteps {
		what := r.step()
		if r.random.IntN(4) == 0 || step == randomSteps-1 {
			require.True(w.t, w.assertHolds(r.a, numbersOf(r.want)), "after step %d, %s", step, what)
		}
		if len(r.views) > 3 {
			closeAll(w.t, r.views[0])
			r.views = r.views[1:]
		}
	}
	closeAll(w.t, append(r.views, r.a)...)
}

func numbersOf(values []int32) model {
	m := numbers()
	for _, v := range values {
		m.data = append(m.data, element(arrayiface.Int32, int(v))...)
	}
	m.shape[0] = len(values)
	return m
}

func (r *walker) values(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(r.random.IntN(100))
	}
	return list
}

// other is a source of n elements: elsewhere, or a view of the buffer itself.
func (r *walker) other(n int) (*gobuffer.Array, []int32) {
	if r.random.IntN(3) == 0 && n <= len(r.want) {
		start := r.random.IntN(len(r.want) - n + 1)
		return r.slice(r.a, start, start+n, 1), slices.Clone(r.want[start : start+n])
	}
	values := r.values(n)
	p := r.places[r.random.IntN(len(r.places))]
	how := arrangements[r.random.IntN(len(arrangements))]
	return r.lay(p, p.options(gobuffer.Transfer(r.random.IntN(3))), numbersOf(values), how), values
}

func (r *walker) step() (what string) {
	t := r.t
	n := r.random.IntN(12)
	value := r.scalar(arrayiface.Int32, 42)
	defer value.Close()
	switch r.random.IntN(12) {
	case 0:
		what = fmt.Sprint("resize with value ", n)
		require.NoError(t, r.a.Resize(n, value))
		r.resized(n)
	case 1:
		what = fmt.Sprint("shrink ", n)
		n = min(n, len(r.want))
		require.NoError(t, r.a.Resize(n, nil))
		r.resized(n)
	case 2:
		what = fmt.Sprint("reserve ", 3*n)
		require.NoError(t, r.a.Reserve(3*n, nil))
	case 3, 4:
		b, values := r.other(n)
		what = fmt.Sprint("append ", values)
		require.NoError(t, r.a.Append(b))
		r.want = append(r.want, values...)
		r.keep(b)
	case 5:
		b, values := r.other(n)
		what = fmt.Sprint("assign ", values)
		require.NoError(t, r.a.Assign(b))
		r.want = slices.Clone(values)
		r.keep(b)
	case 6, 7:
		n = min(n, len(r.want))
		b, values := r.other(n)
		at := r.random.IntN(len(r.want) - n + 1)
		what = fmt.Sprint("set ", at, values)
		require.NoError(t, r.a.Set(at, b, 0, n))
		copy(r.want[at:], values)
		r.keep(b)
	case 8:
		what = "fill"
		require.NoError(t, r.a.Fill(value))
		for i := range r.want {
			r.want[i] = 42
		}
	case 9:
		to := r.places[r.random.IntN(len(r.places))]
		what = fmt.Sprint("move to ", to)
		require.NoError(t, r.a.Move(to.allocator, to.device))
	case 10:
		what = "write every second"
		v := r.slice(r.a, 0, len(r.want), 2)
		b, values := r.other(v.Size())
		require.NoError(t, v.Write(b))
		for i, x := range values {
			r.want[2*i] = x
		}
		closeAll(t, v)
		r.keep(b)
	case 11:
		if r.random.IntN(4) == 0 {
			what = "free"
			require.NoError(t, r.a.Free())
			r.want = nil
			break
		}
		what = "change of stream"
		r.a.SetTransfer(gobuffer.Transfer(r.random.IntN(3)))
		assert.NoError(t, r.a.Synchronize())
	}
	assert.Equal(t, len(r.want), r.a.Size(), what)
	return what
}

func (r *walker) resized(n int) {
	r.want = slices.Clone(r.want[:min(n, len(r.want))])
	for len(r.want) < n {
		r.want = append(r.want, 42)
	}
}

func (r *walker) keep(b *gobuffer.Array) {
	if r.random.IntN(2) == 0 && b.Memory() != nil {
		closeAll(r.t, b)
		return
	}
	r.views = append(r.views, b)
}
