package gobuffer_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// pooling is a Fake whose pool has other memory for each allocation that is imported of it.
type pooling struct {
	*backendtest.Fake
	pools, exports int
	refuse         bool // what is to be closed
}

const pooledBytes = 64 << 10

func (p *pooling) SharedPool(a backends.Allocator, _ int) (int, error) {
	if !a.Ordered() {
		return -1, &backends.UnavailableError{Backend: p.Name()}
	}
	return unix.MemfdCreate("pool", unix.MFD_CLOEXEC)
}

func (p *pooling) ExportPooled(at backends.Region) ([]byte, int, error) {
	p.exports++
	return []byte("exported"), 100, nil
}

func (p *pooling) ExportAllocated(at backends.Region) ([]byte, error) {
	exported, _, err := p.ExportPooled(at)
	return exported, err
}

func (p *pooling) ImportPool(descriptor, _ int) (uintptr, error) {
	var status unix.Stat_t
	if err := unix.Fstat(descriptor, &status); err != nil {
		return 0, err
	}
	p.pools++
	return 5, nil
}

func (p *pooling) ImportPooled(uintptr, []byte) (backends.Region, error) {
	at, descriptor, err := p.NewShared(0, pooledBytes)
	return at, errors.Join(err, unix.Close(descriptor))
}

func (p *pooling) ClosePooled(at backends.Region) error {
	if p.refuse {
		return &backends.NotFreedError{Reason: errors.New("no device")}
	}
	return p.UnmapShared(at, pooledBytes)
}

func (p *pooling) ClosePool(uintptr) error {
	if p.refuse {
		return errors.New("no device")
	}
	p.pools--
	return nil
}

func TestAllocationsOfAnImportedPool(t *testing.T) {
	b := &pooling{Fake: backendtest.NewFake(late)}
	r, err := gobuffer.NewRuntime(b)
	require.NoError(t, err)
	defer b.AssertClean(t)
	descriptor, err := r.SharedPool(backends.CUDAAsync, 0)
	require.NoError(t, err)
	pool, err := r.ImportPool(backends.CUDA, 0, descriptor)
	require.NoError(t, err)
	require.NoError(t, unix.Close(descriptor))

	source, err := r.Allocate(backends.CUDAAsync, 0, 1000, 0, true)
	require.NoError(t, err)
	exported, offset, err := source.ExportPooled()
	require.NoError(t, err)
	assert.Equal(t, make([]byte, 1000), b.Peek(source.Region().Address, 1000), "it waits for work on the memory")
	require.NoError(t, source.Release())

	m, err := pool.Import(exported, offset, 1000)
	require.NoError(t, err)
	assert.False(t, m.Owned())
	layout, err := arrayiface.NewLayout(arrayiface.Int32, []int{250}, nil)
	require.NoError(t, err)
	a := gobuffer.View(m, m.Region().Address, layout, 250, false,
		gobuffer.Options{Allocator: backends.CUDAAsync, Transfer: gobuffer.Async})
	zero, err := r.NewArray(arrayiface.Int32, []int{250}, gobuffer.Options{Allocator: backends.CUDAAsync})
	require.NoError(t, err)
	require.NoError(t, a.Assign(zero))
	require.NoError(t, zero.Close())
	var seen []byte
	stream, err := b.NewStream(0)
	require.NoError(t, err)
	require.NoError(t, b.Launch(0, stream, func(memory func(backends.Address, int) []byte) {
		seen = bytes.Clone(memory(m.Region().Address, 1000))
	}))
	b.refuse = true
	assert.Error(t, pool.Close())
	require.ErrorContains(t, a.Close(), "no device", "what others do there is waited for; the memory stays")
	assert.NotNil(t, seen)
	b.refuse = false
	require.NoError(t, pool.Close())
	require.NoError(t, pool.Close(), "twice")
	assert.Zero(t, b.pools)
	_, err = pool.Import(exported, 0, 1000)
	assert.ErrorIs(t, err, gobuffer.ErrZero)
	require.NoError(t, r.ReleasePostponed())
	require.NoError(t, b.DestroyStream(0, stream))
	live, _ := b.Live()
	assert.Zero(t, live)
}

func TestWhatIsNotInAnAllocationIsNotImported(t *testing.T) {
	b := &pooling{Fake: backendtest.NewFake(backendtest.FakeOptions{})}
	r, err := gobuffer.NewRuntime(b)
	require.NoError(t, err)
	defer b.AssertClean(t)
	pool, err := r.ImportPool(backends.CUDA, 0, int(os.Stdin.Fd()))
	require.NoError(t, err)
	for _, each := range [][2]int{{-1, 1}, {0, 0}, {0, pooledBytes + 1}, {pooledBytes, 1}, {1 << 62, 1 << 62}} {
		_, err := pool.Import([]byte("exported"), each[0], each[1])
		assert.ErrorContains(t, err, "offset and size", "%v", each)
	}
	require.NoError(t, pool.Close())
	_, err = r.ImportPool(backends.CUDA, 0, -1)
	assert.ErrorIs(t, err, unix.EBADF)
	_, err = r.SharedPool(backends.CUDA, 0)
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	plain, err := gobuffer.NewRuntime(b.Fake)
	require.NoError(t, err)
	_, err = plain.SharedPool(backends.CUDAAsync, 0)
	assert.ErrorIs(t, err, backends.ErrUnavailable)
	var none *gobuffer.ImportedPool
	assert.ErrorIs(t, none.Close(), gobuffer.ErrZero)
}
