package gobuffer_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

const kib = 1 << 10

// partsWorld has parts of an array on a device, which is closed.
func partsWorld(t *testing.T, size int) (*backendtest.Fake, *gobuffer.Runtime, *gobuffer.Parts) {
	fake := backendtest.NewFake(backendtest.FakeOptions{Devices: 1, Space: backends.SpaceCUDA})
	r, err := gobuffer.NewRuntime(fake)
	require.NoError(t, err)
	a, err := r.NewArray(arrayiface.Uint8, []int{size + kib}, gobuffer.Options{Allocator: backends.CUDA})
	require.NoError(t, err)
	p, err := gobuffer.NewParts(a, size)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	return fake, r, p
}

func TestPartsAreTakenWhereTheyFitFirst(t *testing.T) {
	fake, _, p := partsWorld(t, 4*kib)
	base := p.Region().Address
	take := func(size int) backends.Address {
		at, err := p.Take(size, false)
		require.NoError(t, err)
		return at - base
	}
	taken := []backends.Address{take(1), take(513), take(0), take(512)}
	assert.Equal(t, []backends.Address{0, 512, kib + 512, 2 * kib}, taken)
	_, err := p.Take(2*kib, false)
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, "1536 of 4096 bytes are free, 1536 of them in one piece", full.Detail)
	_, err = p.Take(math.MaxInt, true)
	require.ErrorAs(t, err, &full)
	assert.True(t, p.Give(base+512, false))
	assert.False(t, p.Give(base+512, false))
	assert.False(t, p.Give(base+7, false))
	assert.False(t, p.Give(base, true), "no library has it")
	free, largest := p.Free()
	assert.Equal(t, []int{2560, 1536}, []int{free, largest})
	assert.Zero(t, fake.CallCount("SynchronizeDevice"))
	assert.Equal(t, backends.Address(512), take(600))
	assert.Equal(t, 1, fake.CallCount("SynchronizeDevice"), "nothing uses it any more")
	assert.Equal(t, backends.Address(2560), take(600))
	assert.Equal(t, 1, fake.CallCount("SynchronizeDevice"))
	_, err = p.Take(-1, false)
	var argument *gobuffer.ArgumentError
	require.ErrorAs(t, err, &argument)
	p.Close()
}

func TestWhatALibraryHasKeepsTheMemory(t *testing.T) {
	fake, r, p := partsWorld(t, 4*kib)
	one, err := p.Take(100, true)
	require.NoError(t, err)
	other, err := p.Take(100, true)
	require.NoError(t, err)
	_, err = p.Take(100, false)
	require.NoError(t, err)
	assert.Equal(t, 2, p.Lent())
	assert.Equal(t, 2, p.Close())
	assert.Equal(t, 2, p.Close())
	_, err = p.Take(1, true)
	assert.ErrorIs(t, err, gobuffer.ErrFreed)
	assert.True(t, p.Give(one, true))
	r.SettleGrants()
	assert.Equal(t, int64(1), statisticsOf(r, backends.CUDA).Live)
	before := fake.CallCount("SynchronizeDevice")
	assert.True(t, p.Give(other, true))
	r.SettleGrants()
	assert.Zero(t, statisticsOf(r, backends.CUDA).Live)
	assert.Greater(t, fake.CallCount("SynchronizeDevice"), before, "work may use what is given back")
	assert.False(t, p.Give(other, true))
	assert.Zero(t, p.Close())
}

func TestPartsThatNobodyHasEndWithTheirClose(t *testing.T) {
	_, r, p := partsWorld(t, kib)
	at, err := p.Take(100, false)
	require.NoError(t, err)
	assert.Zero(t, p.Close())
	assert.Zero(t, statisticsOf(r, backends.CUDA).Live)
	assert.True(t, p.Give(at, false))
	r.SettleGrants()
}

func TestPartsNeedAnArrayAndASizeThatItHas(t *testing.T) {
	_, err := gobuffer.NewParts(nil, 0)
	assert.ErrorIs(t, err, gobuffer.ErrZero)
	a := made(t).Array
	var argument *gobuffer.ArgumentError
	for _, size := range []int{-512, 1, 512} {
		_, err = gobuffer.NewParts(a, size)
		require.ErrorAs(t, err, &argument)
	}
}
