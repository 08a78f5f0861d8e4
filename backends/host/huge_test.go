//go:build cgo

package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/backends"
)

func always() bool { return true }

// readAll returns what a file has, by the file.
func readAll(t testing.TB, descriptor, size int) []byte {
	t.Helper()
	values := make([]byte, size)
	for at := 0; at < size; {
		n, err := unix.Pread(descriptor, values[at:], int64(at))
		require.NoError(t, err)
		require.Positive(t, n)
		at += n
	}
	return values
}

func pattern(size int) []byte {
	values := make([]byte, size)
	for i := range values {
		values[i] = byte(i*7 + i>>12 + 1)
	}
	return values
}

func addressOf(values []byte) backends.Address {
	return backends.Address(uintptr(unsafe.Pointer(unsafe.SliceData(values))))
}

func newFile(t testing.TB, size int) int {
	t.Helper()
	page := os.Getpagesize()
	descriptor, err := NewSharedFile((size + page - 1) / page * page)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(descriptor) })
	return descriptor
}

func TestWriteSharedOfAnySize(t *testing.T) {
	page, huge := os.Getpagesize(), max(hugePage(), 2<<20)
	for _, size := range []int{1, page - 1, page, page + 1, 2*huge - 1, 2 * huge, 2*huge + 1, 5*huge + page,
		4*huge + 3*page + 5, 9 * huge} {
		values := pattern(size)
		for name, how := range map[string]func() int{
			"new": func() int { return newFile(t, size) },
			"cut": func() int { return readyFile(t, size+3*huge, (size+page-1)/page*page) },
			"longer": func() int {
				return readyFile(t, max(page, size/2/page*page), (size+page-1)/page*page)
			},
		} {
			descriptor := how()
			require.NoError(t, WriteShared(context.Background(), descriptor, addressOf(values), size))
			got := readAll(t, descriptor, size)
			assert.True(t, bytes.Equal(values, got), "%s of %d bytes", name, size)
			var file unix.Stat_t
			require.NoError(t, unix.Fstat(descriptor, &file))
			assert.EqualValues(t, (size+page-1)/page*page, file.Size)
			forGood, err := SealShared(descriptor)
			require.NoError(t, err)
			assert.True(t, forGood, "it is mapped for writing still")
		}
	}
}

func readyFile(t testing.TB, size, then int) int {
	t.Helper()
	page := os.Getpagesize()
	descriptor, err := NewReadyFile((size+page-1)/page*page, always)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(descriptor) })
	require.NoError(t, FinishReadyFile(descriptor, then))
	return descriptor
}

func TestReadyFilesAreThereAndZero(t *testing.T) {
	page := os.Getpagesize()
	for _, size := range []int{page, 3 * page, 2 << 20, 2<<20 + page, 9<<20 + 5*page} {
		descriptor, err := NewReadyFile(size, always)
		require.NoError(t, err)
		var file unix.Stat_t
		require.NoError(t, unix.Fstat(descriptor, &file))
		assert.GreaterOrEqual(t, file.Blocks*512, int64(size))
		require.NoError(t, FinishReadyFile(descriptor, size+page))
		assert.Equal(t, make([]byte, size+page), readAll(t, descriptor, size+page))
		require.ErrorIs(t, unix.Ftruncate(descriptor, int64(page)), unix.EPERM)
		require.NoError(t, unix.Close(descriptor))
	}
}

func TestReadyFilesAreGivenUp(t *testing.T) {
	before := descriptors(t)
	asked := 0
	descriptor, err := NewReadyFile(64<<20, func() bool { asked++; return asked < 3 })
	require.NoError(t, err)
	assert.Equal(t, -1, descriptor)
	_, err = NewReadyFile(1<<60, always)
	require.ErrorAs(t, err, new(*backends.OutOfMemoryError))
	_, err = NewReadyFile(1000, always)
	require.ErrorContains(t, err, "1000 bytes")
	assert.Equal(t, before, descriptors(t))
}

func TestWriteSharedWithoutHugePages(t *testing.T) {
	had := hugePage
	defer func() { hugePage = had }()
	values := pattern(40<<20 + 777)
	for _, size := range []int{0, os.Getpagesize(), 64 << 10, 1 << 20} {
		hugePage = func() int { return size }
		for _, descriptor := range []int{newFile(t, len(values)), readyFile(t, len(values), len(values)/4096*4096+4096)} {
			require.NoError(t, WriteShared(context.Background(), descriptor, addressOf(values), len(values)))
			assert.True(t, bytes.Equal(values, readAll(t, descriptor, len(values))), "huge pages of %d bytes", size)
		}
	}
}

func TestWriteSharedGivesUpHugePagesThatTakeLong(t *testing.T) {
	had := patience
	defer func() { patience = had }()
	patience = 0
	values := pattern(150<<20 + 4097)
	descriptor := newFile(t, len(values))
	require.NoError(t, WriteShared(context.Background(), descriptor, addressOf(values), len(values)))
	assert.True(t, bytes.Equal(values, readAll(t, descriptor, len(values))))
}

func TestWriteSharedToTwoFilesAtOnce(t *testing.T) {
	values := pattern(34<<20 + 3)
	var both sync.WaitGroup
	for range 2 {
		descriptor := newFile(t, len(values))
		both.Go(func() {
			assert.NoError(t, WriteShared(context.Background(), descriptor, addressOf(values), len(values)))
			got := make([]byte, len(values))
			n, err := unix.Pread(descriptor, got, 0)
			assert.NoError(t, err)
			assert.Equal(t, len(got), n)
			assert.True(t, bytes.Equal(values, got))
		})
	}
	both.Wait()
}

func TestWriteSharedEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	end()
	values := pattern(9 << 20)
	err := WriteShared(ctx, newFile(t, len(values)), addressOf(values), len(values))
	require.ErrorIs(t, err, context.Canceled)
	err = WriteShared(context.Background(), -1, addressOf(values), len(values))
	require.Error(t, err)
	require.False(t, errors.As(err, new(*backends.OutOfMemoryError)))
}

func TestPreparedMemoryIsThereAndZero(t *testing.T) {
	b, page := New().(*Backend), os.Getpagesize()
	for _, size := range []int{page, 4<<20 + page, 40<<20 + 3*page} {
		at, descriptor, err := b.NewShared(backends.HostDevice, size)
		require.NoError(t, err)
		require.NoError(t, PrepareShared(context.Background(), descriptor, at.Address, size))
		var file unix.Stat_t
		require.NoError(t, unix.Fstat(descriptor, &file))
		if huge := hugePage(); huge > 0 && size >= 2*huge {
			assert.EqualValues(t, size/huge*huge, file.Blocks*512)
		}
		assert.True(t, bytes.Equal(make([]byte, size), bytesAt(at.Address, size)))
		values := pattern(size)
		copy(bytesAt(at.Address, size), values)
		require.NoError(t, PrepareShared(context.Background(), descriptor, at.Address, size))
		assert.True(t, bytes.Equal(values, readAll(t, descriptor, size)))
		ctx, end := context.WithCancel(context.Background())
		end()
		require.ErrorIs(t, PrepareShared(ctx, descriptor, at.Address, size), context.Canceled)
		require.NoError(t, b.UnmapShared(at, size))
		require.NoError(t, unix.Close(descriptor))
	}
}

// BenchmarkWriteShared writes to new and to ready memory, beside a copy to memory that is there.
func BenchmarkWriteShared(b *testing.B) {
	const size = 512 << 20
	values, there := pattern(size), pattern(size)
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(size)
		for range b.N {
			copy(there, values)
		}
	})
	whole := func(descriptor int) error {
		return WriteShared(context.Background(), descriptor, addressOf(values), size)
	}
	parts := func(descriptor int) error {
		return writeParts(context.Background(), descriptor, values, 0, size)
	}
	ready := func() (int, error) { return NewReadyFile(size, always) }
	fresh := func() (int, error) { return NewSharedFile(size) }
	for _, one := range []struct {
		name  string
		file  func() (int, error)
		write func(int) error
	}{{"new-by-file", fresh, parts}, {"new", fresh, whole}, {"ready-by-file", ready, parts}, {"ready", ready, whole}} {
		b.Run(one.name, func(b *testing.B) {
			b.SetBytes(size)
			for range b.N {
				b.StopTimer()
				descriptor, err := one.file()
				require.NoError(b, err)
				b.StartTimer()
				require.NoError(b, one.write(descriptor))
				b.StopTimer()
				require.NoError(b, unix.Close(descriptor))
				b.StartTimer()
			}
		})
	}
	b.Run("making-ready", func(b *testing.B) {
		b.SetBytes(size)
		for range b.N {
			descriptor, err := ready()
			require.NoError(b, err)
			b.StopTimer()
			require.NoError(b, unix.Close(descriptor))
			b.StartTimer()
		}
	})
}
