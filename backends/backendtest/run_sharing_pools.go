package backendtest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/backends"
)

// pooled is what allocator's memory on the device other processes import one by one, or None.
func (s *sharing) pooled(t *testing.T) (backends.PoolSharer, backends.Allocator, int) {
	able, ok := backends.As[backends.PoolSharer](s.b)
	if !ok {
		return nil, backends.None, -1
	}
	for _, a := range backends.Allocators() {
		if a.Backend() != s.b.Name() {
			continue
		}
		descriptor, err := able.SharedPool(a, s.device)
		if err == nil {
			return able, a, descriptor
		}
		require.ErrorIs(t, err, backends.ErrUnavailable)
	}
	return nil, backends.None, -1
}

const (
	pooledSize   = 5000
	pooledOffset = 100
)

// testPools shares an allocation of a pool with the other process, whose part is bePooled.
func (s *sharing) testPools(t *testing.T, o *other) {
	able, a, descriptor := s.pooled(t)
	if able == nil {
		send(t, o.socket, "no pools", -1)
		return
	}
	of := s.suite
	of.a = a
	spare, region := of.allocate(t, 300, false, 0), of.allocate(t, pooledSize, false, 0)
	require.NoError(t, s.b.Fill(spare, []byte{9}, 300, 0))
	require.NoError(t, s.b.Fill(region, []byte{1}, pooledSize, 0))
	s.wait(t, 0)
	exported, offset, err := able.ExportPooled(shifted(region, pooledOffset))
	require.NoError(t, err)
	assert.Equal(t, pooledOffset, offset)
	_, host := scratch(t, 100)
	_, _, err = able.ExportPooled(host)
	assert.Error(t, err)
	for _, wrong := range []int{-1, 0} {
		_, err = able.ImportPool(wrong, s.device)
		assert.Error(t, err)
	}
	send(t, o.socket, "pool", descriptor)
	require.NoError(t, unix.Close(descriptor))
	allocated, err := able.ExportAllocated(region)
	require.NoError(t, err)
	send(t, o.socket, string(exported), -1)
	send(t, o.socket, string(allocated), -1)
	receive(t, o.socket, "pool written")
	equal(t, slices.Concat(repeated(1, pooledOffset), repeated(2, pooledSize-pooledOffset)),
		s.read(t, region, pooledSize, 0), "what the other process has written")
	equal(t, repeated(9, 300), s.read(t, spare, 300, 0), "what is beside it")
}

func (s *sharing) bePooled(t *testing.T, o *other) {
	word, descriptor := receiveAny(t, o.socket)
	if word == "no pools" {
		return
	}
	require.Equal(t, "pool", word)
	exported, _ := receiveAny(t, o.socket)
	allocated, _ := receiveAny(t, o.socket)
	able, ok := backends.As[backends.PoolSharer](s.b)
	require.True(t, ok)
	pool, err := able.ImportPool(descriptor, s.device)
	require.NoError(t, err)
	require.NoError(t, unix.Close(descriptor))
	for _, wrong := range []string{exported[1:], string(make([]byte, len(exported)))} {
		_, err := able.ImportPooled(pool, []byte(wrong))
		assert.Error(t, err)
	}
	at, err := able.ImportPooled(pool, []byte(exported))
	require.NoError(t, err)
	equal(t, repeated(1, pooledSize), s.read(t, at, pooledSize, 0), "what the maker has written")
	again, err := able.ImportPooled(pool, []byte(allocated))
	require.NoError(t, err)
	assert.Equal(t, at, again, "it starts there")
	require.NoError(t, able.ClosePooled(again))
	if locator, ok := backends.As[backends.Locator](s.b); ok {
		found, err := locator.Locate(at.Address)
		require.NoError(t, err)
		assert.Equal(t, at, found.Region)
	}
	require.NoError(t, s.b.Fill(shifted(at, pooledOffset), []byte{2}, pooledSize-pooledOffset, 0))
	require.NoError(t, able.ClosePooled(at), "which waits")
	assert.Error(t, able.ClosePooled(at), "twice")
	require.NoError(t, able.ClosePool(pool))
	assert.Error(t, able.ClosePool(pool), "twice")
	_, err = able.ImportPooled(pool, []byte(exported))
	assert.Error(t, err)
	send(t, o.socket, "pool written", -1)
}
