package hetero_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/hetero"
)

func places(t *testing.T, names ...string) (list []hetero.Place) {
	for _, name := range names {
		p, err := hetero.ParsePlace(name)
		require.NoError(t, err)
		assert.Equal(t, name, p.String())
		list = append(list, p)
	}
	return list
}

func TestAccelerators(t *testing.T) {
	for _, c := range []struct {
		devices  int
		restrict []string
		want     []string
	}{
		{0, nil, nil},
		{1, nil, []string{"cuda:0", "hip:0"}},
		{2, nil, []string{"cuda:0", "cuda:1", "hip:0", "hip:1"}},
		{2, []string{"hip"}, []string{"hip:0", "hip:1"}},
		{4, []string{"hip:3,cuda:1"}, []string{"cuda:1", "hip:3"}},
		{4, []string{"hip:3", " cuda:1 , cuda:1", "cpu"}, []string{"cuda:1", "hip:3"}},
		{2, []string{"cuda", "cuda:1"}, []string{"cuda:0", "cuda:1"}},
		{2, []string{"cuda:7"}, nil},
		{0, []string{"cuda"}, nil},
		{2, []string{"cpu"}, nil},
		{2, []string{"none"}, nil},
	} {
		w := newWorld(t, c.devices, late)
		list, err := w.scheduler.Accelerators(c.restrict...)
		require.NoError(t, err)
		assert.Equal(t, places(t, c.want...), list, "%d devices, %v", c.devices, c.restrict)
		if len(c.restrict) == 1 {
			t.Setenv(hetero.AcceleratorsSetting, c.restrict[0])
			list, err := w.scheduler.Accelerators()
			require.NoError(t, err)
			assert.Equal(t, places(t, c.want...), list, "%d devices, %v in the environment", c.devices, c.restrict)
			t.Setenv(hetero.AcceleratorsSetting, "none")
			list, err = w.scheduler.Accelerators(c.restrict...)
			require.NoError(t, err)
			assert.Equal(t, places(t, c.want...), list, "what is given comes before the environment")
		}
	}
}

func TestAcceleratorsThatAreNot(t *testing.T) {
	w := newWorld(t, 2, late)
	for _, name := range []string{"metal", "cuda:", "cuda:-1", "cuda:+1", "cuda:x", "cuda:1:2", "", "host", "cuda,,hip",
		"CUDA"} {
		_, err := w.scheduler.Accelerators(name)
		var bad *gobuffer.ArgumentError
		require.ErrorAs(t, err, &bad, "%q", name)
		assert.Equal(t, "restrict", bad.Argument)
		assert.Contains(t, bad.Accepted, "cuda, hip")
	}
	t.Setenv(hetero.AcceleratorsSetting, "metal")
	_, err := w.scheduler.Accelerators()
	assert.EqualError(t, err, `HAMR_ACCELERATORS is "metal": accepted is "cpu", "none", and, `+
		`with or without a device's number, as in "cuda:1": cuda, hip`)
}

// What has no streams is no accelerator, nor is a device that is the host, nor a runtime that is absent.
func TestWhatIsNoAccelerator(t *testing.T) {
	t.Setenv(hetero.AcceleratorsSetting, "")
	plain := backendtest.NewFake(backendtest.FakeOptions{Synchronous: true}).WithoutStreams()
	absent := backendtest.NewFake(backendtest.FakeOptions{Space: backends.SpaceOpenCL, Unavailable: "no library"})
	r, err := gobuffer.NewRuntime(host.New(), plain, absent)
	require.NoError(t, err)
	list, err := hetero.New(r).Accelerators()
	require.NoError(t, err)
	assert.Empty(t, list)

	r, err = gobuffer.NewRuntime(onHost{backendtest.NewFake(backendtest.FakeOptions{Devices: 2})})
	require.NoError(t, err)
	list, err = hetero.New(r).Accelerators()
	require.NoError(t, err)
	assert.Equal(t, places(t, "cuda:0"), list)
}

// A processor that a runtime serves as a device of its own is taken by who names it, not instead of the
// program's own way to work there.
func TestProcessorsAreForThoseWhoNameThem(t *testing.T) {
	t.Setenv(hetero.AcceleratorsSetting, "")
	o := backendtest.FakeOptions{Space: backends.SpaceOpenCL, Devices: 2}
	r, err := gobuffer.NewRuntime(host.New(), onProcessor{backendtest.NewFake(o)})
	require.NoError(t, err)
	s := hetero.New(r)
	accelerators := func(restrict ...string) (names []string) {
		list, err := s.Accelerators(restrict...)
		require.NoError(t, err)
		for _, p := range list {
			names = append(names, p.String())
		}
		return names
	}
	for _, c := range []struct {
		restrict, want []string
		chosen         string
	}{
		{nil, []string{"opencl:0"}, "opencl"},
		{[]string{"opencl"}, []string{"opencl:0", "opencl:1"}, "opencl"},
		{[]string{"opencl:1"}, []string{"opencl:1"}, "opencl"},
		{[]string{"cpu"}, nil, "cpu"},
	} {
		assert.Equal(t, c.want, accelerators(c.restrict...), "%v", c.restrict)
		name, _, err := hetero.Switch(s, map[string]int{"opencl": 1, "cpu": 2}, c.restrict...)
		require.NoError(t, err)
		assert.Equal(t, c.chosen, name, "%v", c.restrict)
	}
	t.Setenv(hetero.AcceleratorsSetting, "opencl:1")
	assert.Equal(t, []string{"opencl:1"}, accelerators())

	o.Devices = 1
	r, err = gobuffer.NewRuntime(host.New(), onlyProcessors{backendtest.NewFake(o)})
	require.NoError(t, err)
	s = hetero.New(r)
	t.Setenv(hetero.AcceleratorsSetting, "")
	name, _, err := hetero.Switch(s, map[string]int{"opencl": 1, "cpu": 2})
	require.NoError(t, err)
	assert.Equal(t, "cpu", name)
	chooser, err := s.NewChooser(hetero.ChooserOptions{})
	require.NoError(t, err)
	assert.Empty(t, chooser.Places())
	chooser, err = s.NewChooser(hetero.ChooserOptions{Among: []string{"opencl"}})
	require.NoError(t, err)
	assert.Equal(t, places(t, "opencl:0"), chooser.Places())
}

// onProcessor has a CPU for its second device.
type onProcessor struct{ *backendtest.Fake }

func (onProcessor) OnProcessor(device int) bool { return device == 1 }

// onlyProcessors has nothing else.
type onlyProcessors struct{ *backendtest.Fake }

func (onlyProcessors) OnProcessor(int) bool { return true }

// onHost has the host's processors for its second device.
type onHost struct{ *backendtest.Fake }

func (onHost) OnHost(device int) bool { return device == 1 }

func TestPlacesHaveNames(t *testing.T) {
	for _, name := range []string{"", "cuda", ":1", "cuda:", "cuda:-1", "cuda:1x", "cuda:0:1", "cuda:99999999999"} {
		_, err := hetero.ParsePlace(name)
		var bad *gobuffer.ArgumentError
		require.ErrorAs(t, err, &bad, "%q", name)
		assert.Equal(t, "place", bad.Argument)
	}
}

func TestTheDefaultScheduler(t *testing.T) {
	require.NoError(t, gobuffer.Use(host.New()))
	first, err := hetero.Default()
	require.NoError(t, err)
	again, err := hetero.Default()
	require.NoError(t, err)
	assert.Same(t, first, again)
	require.NoError(t, gobuffer.Use(host.New()))
	other, err := hetero.Default()
	require.NoError(t, err)
	assert.NotSame(t, first, other)
	runtime, err := gobuffer.Default()
	require.NoError(t, err)
	assert.Same(t, runtime, other.Runtime())
}
