package hetero_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
	"hamr/hetero"
)

func (w *world) chooser(o hetero.ChooserOptions) *hetero.Chooser {
	w.t.Helper()
	c, err := w.scheduler.NewChooser(o)
	require.NoError(w.t, err)
	return c
}

func (w *world) choose(c *hetero.Chooser, key int) *hetero.Token {
	w.t.Helper()
	token, err := c.Choose(key)
	require.NoError(w.t, err)
	return token
}

// CMSSW's rule: the number of the stream of events modulo the number of devices.
func TestRoundRobin(t *testing.T) {
	for _, devices := range []int{0, 1, 4} {
		w := newWorld(t, devices, late)
		c := w.chooser(hetero.ChooserOptions{Among: []string{"cuda"}})
		assert.Len(t, c.Places(), devices)
		for _, key := range []int{0, 1, 2, 3, 4, 5, 11, -1} {
			token := w.choose(c, key)
			assert.Equal(t, devices > 0, hetero.DeviceFilter(token))
			if token == nil {
				continue
			}
			assert.Equal(t, hetero.Place{Backend: "cuda", Device: (key + devices) % devices}, token.Place())
			assert.NotZero(t, token.Stream())
			require.NoError(t, token.Release())
			require.NoError(t, token.Release(), "twice")
		}
		w.assertNeverBlocked()
	}
}

func TestADisabledChooserAsksNobody(t *testing.T) {
	w := newWorld(t, 4, late)
	c := w.chooser(hetero.ChooserOptions{Disabled: true})
	assert.Empty(t, w.calls(func() { assert.False(t, hetero.DeviceFilter(w.choose(c, 0))) }))
	assert.Empty(t, c.Places())
	assert.Zero(t, w.cuda.CallCount("Probe"))
}

func TestTheDeviceWithMostFreeMemory(t *testing.T) {
	w := newWorld(t, 4, late)
	c := w.chooser(hetero.ChooserOptions{Policy: hetero.FreeMemory, Among: []string{"cuda"}})
	token := w.choose(c, 6)
	assert.Equal(t, 2, token.Place().Device, "all have as much: the key decides")
	require.NoError(t, token.Release())
	for device, bytes := range []int{1 << 20, 3 << 20, 1 << 10, 2 << 20} {
		m, err := w.runtime.Allocate(backends.CUDA, device, bytes, 0, false)
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Release()) }()
	}
	token = w.choose(c, 0)
	assert.Equal(t, 2, token.Place().Device)
	require.NoError(t, token.Release())
	w.cuda.FailAt("MemoryInfo", 1, errInjected)
	_, err := c.Choose(0)
	require.ErrorIs(t, err, errInjected)
	assert.ErrorContains(t, err, "cuda:0")
}

// What a pool keeps for reuse counts as free.
func TestKeptMemoryIsFree(t *testing.T) {
	fake := pooling{backendtest.NewFake(backendtest.FakeOptions{Devices: 2, Memory: 1 << 20})}
	r, err := gobuffer.NewRuntime(fake)
	require.NoError(t, err)
	s := hetero.New(r)
	c, err := s.NewChooser(hetero.ChooserOptions{Policy: hetero.FreeMemory})
	require.NoError(t, err)
	token, err := c.Choose(0)
	require.NoError(t, err)
	assert.Equal(t, 1, token.Place().Device)
	require.NoError(t, token.Release())
}

// pooling keeps memory of its second device for reuse.
type pooling struct{ *backendtest.Fake }

func (pooling) Pools() []backends.PoolStatistics {
	return []backends.PoolStatistics{{Allocator: backends.CUDA, Device: 1, Cached: 1}}
}

func (pooling) LimitPool(backends.Allocator, int, int64) error { return nil }

func TestTheDeviceWithLeastPending(t *testing.T) {
	w := newWorld(t, 4, late)
	c := w.chooser(hetero.ChooserOptions{Policy: hetero.LeastPending, Among: []string{"cuda"}})
	var tokens []*hetero.Token
	for want := range 4 {
		token := w.choose(c, 0)
		assert.Equal(t, want, token.Place().Device, "those that are handed out count")
		tokens = append(tokens, token)
	}
	w.work(tokens[0].Place(), tokens[0].Stream())
	for _, token := range tokens[:3] {
		require.NoError(t, token.Release())
	}
	token := w.choose(c, 0)
	assert.Equal(t, 1, token.Place().Device, "what was given back counts while it has work")
	require.NoError(t, token.Release())
	w.finish()
	token = w.choose(c, 0)
	assert.Equal(t, 0, token.Place().Device)
	require.NoError(t, token.Release())
	require.NoError(t, tokens[3].Release())
	w.cuda.FailAt("Idle", 1, errInjected)
	_, err := c.Choose(0)
	require.ErrorIs(t, err, errInjected)
	w.assertNeverBlocked()
}

// A device that two runtimes show is chosen once, unless it is asked for.
func TestADeviceOfTwoRuntimesIsOne(t *testing.T) {
	w := newWorld(t, 2, backendtest.FakeOptions{Identities: []backends.UUID{{1}, {2}}})
	assert.Equal(t, places(t, "cuda:0", "cuda:1"), w.chooser(hetero.ChooserOptions{}).Places())
	assert.Equal(t, places(t, "cuda:0", "cuda:1", "hip:0", "hip:1"),
		w.chooser(hetero.ChooserOptions{Among: []string{"cuda,hip"}}).Places())
	w = newWorld(t, 2, late)
	assert.Len(t, w.chooser(hetero.ChooserOptions{}).Places(), 4)
}

func TestPoliciesHaveNames(t *testing.T) {
	for _, p := range []hetero.Policy{hetero.RoundRobin, hetero.FreeMemory, hetero.LeastPending} {
		read, err := hetero.ParsePolicy(p.String())
		require.NoError(t, err)
		assert.Equal(t, p, read)
	}
	_, err := hetero.ParsePolicy("random")
	var bad *gobuffer.ArgumentError
	require.ErrorAs(t, err, &bad)
	assert.Equal(t, `policy is "random": accepted is one of ["round_robin" "free_memory" "least_pending"]`, bad.Error())
	w := newWorld(t, 1, late)
	_, err = w.scheduler.NewChooser(hetero.ChooserOptions{Policy: 3})
	require.ErrorAs(t, err, &bad)
	_, err = w.scheduler.NewChooser(hetero.ChooserOptions{Among: []string{"metal"}})
	require.ErrorAs(t, err, &bad)
	var none *hetero.Chooser
	_, err = none.Choose(0)
	require.ErrorIs(t, err, gobuffer.ErrZero)
}

func TestSwitch(t *testing.T) {
	cases := map[string]int{"cuda": 1, "hip": 2, "cpu": 3}
	for _, c := range []struct {
		devices  int
		restrict string
		cases    map[string]int
		want     string
	}{
		{0, "", cases, "cpu"},
		{1, "", cases, "cuda"},
		{4, "", cases, "cuda"},
		{4, "hip:3", cases, "hip"},
		{4, "cpu", cases, "cpu"},
		{4, "", map[string]int{"hip": 2, "cpu": 3}, "hip"},
		{4, "cuda", map[string]int{"hip": 2, "cpu": 3}, "cpu"},
		{4, "", map[string]int{"sycl": 7, "cpu": 3}, "cpu"},
	} {
		w := newWorld(t, c.devices, late)
		t.Setenv(hetero.AcceleratorsSetting, c.restrict)
		name, chosen, err := hetero.Switch(w.scheduler, c.cases)
		require.NoError(t, err)
		assert.Equal(t, c.want, name)
		assert.Equal(t, c.cases[c.want], chosen)
		asked := map[string]int{"cuda": w.cuda.CallCount("Probe"), "hip": w.hip.CallCount("Probe")}
		probed := map[string]int{"cuda": 0, "hip": 0}
		for name := range probed {
			_, there := c.cases[name]
			allowed := c.restrict == "" || strings.HasPrefix(c.restrict, name)
			if there && allowed && (name == "cuda" || c.want != "cuda") {
				probed[name] = 1
			}
		}
		assert.Equal(t, probed, asked, "what may be chosen and is before it is asked once: %+v", c)
	}
}

func TestTheFirstOfNames(t *testing.T) {
	for _, c := range []struct {
		devices  int
		names    []string
		restrict string
		want     string
	}{
		{1, []string{"hip", "cuda"}, "", "hip"},
		{1, []string{"cpu", "hip"}, "", "hip"},
		{1, []string{"hip", "cuda"}, "cuda", "cuda"},
		{0, []string{"cpu", "hip"}, "", "cpu"},
		{0, []string{"hip", "cuda"}, "", ""},
		{1, []string{"sycl", "cuda"}, "", "cuda"},
	} {
		w := newWorld(t, c.devices, late)
		t.Setenv(hetero.AcceleratorsSetting, c.restrict)
		name, err := w.scheduler.FirstOf(c.names)
		require.NoError(t, err)
		assert.Equal(t, c.want, name, "%+v", c)
	}
}

func TestSwitchesThatServeNowhere(t *testing.T) {
	w := newWorld(t, 1, late)
	for cases, want := range map[string]string{
		"cdua": `case is "cdua": accepted is "cpu" and names of backends that have streams, as cuda, hip`,
		"host": `case is "host": accepted is "cpu" and names of backends that have streams, as cuda, hip`,
		"sycl": `cases is ["sycl"]: accepted is "cpu", or a backend of which there is a device that may be used`,
	} {
		_, _, err := hetero.Switch(w.scheduler, map[string]int{cases: 1})
		assert.EqualError(t, err, want)
	}
	_, _, err := hetero.Switch(w.scheduler, map[string]int{"cuda": 1}, "metal")
	var bad *gobuffer.ArgumentError
	require.ErrorAs(t, err, &bad)
	w.cuda.FailAt("DeviceCount", 1, errInjected)
	_, _, err = hetero.Switch(w.scheduler, map[string]int{"cuda": 1, "cpu": 2})
	require.ErrorIs(t, err, errInjected)
	_, _, err = hetero.Switch(nil, map[string]int{"cpu": 2})
	require.ErrorIs(t, err, gobuffer.ErrZero)
}

func TestFirstAvailable(t *testing.T) {
	device, cpu := 1, 2
	for _, c := range []struct {
		products []*int
		want     *int
	}{
		{[]*int{&device, &cpu}, &device},
		{[]*int{nil, &cpu}, &cpu},
		{[]*int{nil, nil}, nil},
		{nil, nil},
	} {
		found, ok := hetero.FirstAvailable(c.products...)
		assert.Same(t, c.want, found)
		assert.Equal(t, c.want != nil, ok)
	}
}
