package host

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/backends"
)

const page = 4096

// written tells by the kernel, which has it that the memory cannot be written to, not by a fault.
func written(t *testing.T, at backends.Region) error {
	t.Helper()
	pipe := make([]int, 2)
	require.NoError(t, unix.Pipe(pipe))
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	_, err := unix.Write(pipe[1], []byte{9})
	require.NoError(t, err)
	_, err = unix.Read(pipe[0], bytesAt(at.Address, 1))
	return err
}

func TestSealedForGoodWhereNobodyWrites(t *testing.T) {
	b := New().(*Backend)
	size := os.Getpagesize()
	before := descriptors(t)
	at, descriptor, err := b.NewShared(backends.HostDevice, size)
	require.NoError(t, err)
	require.NoError(t, written(t, at))
	writer, err := b.MapShared(descriptor, backends.HostDevice, size, false)
	require.NoError(t, err)
	reader, err := b.MapShared(descriptor, backends.HostDevice, size, true)
	require.NoError(t, err)

	require.NoError(t, b.ProtectShared(at, size))
	require.NoError(t, b.ProtectShared(at, size), "twice")
	assert.ErrorIs(t, written(t, at), unix.EFAULT)
	assert.ErrorIs(t, written(t, reader), unix.EFAULT)
	forGood, err := SealShared(descriptor)
	require.NoError(t, err)
	assert.False(t, forGood, "one has it mapped for writing")
	require.NoError(t, written(t, writer))
	_, err = b.MapShared(descriptor, backends.HostDevice, size, false)
	assert.ErrorIs(t, err, unix.EPERM)

	require.NoError(t, b.UnmapShared(writer, size))
	forGood, err = SealShared(descriptor)
	require.NoError(t, err)
	assert.True(t, forGood)
	_, err = unix.Pwrite(descriptor, []byte{1}, 0)
	assert.ErrorIs(t, err, unix.EPERM)
	late, err := b.MapShared(descriptor, backends.HostDevice, size, true)
	require.NoError(t, err)
	assert.EqualValues(t, 9, bytesAt(late.Address, 1)[0])
	for _, each := range []backends.Region{at, reader, late} {
		assert.ErrorIs(t, unix.Mprotect(bytesAt(each.Address, size), unix.PROT_READ|unix.PROT_WRITE), unix.EACCES)
		require.NoError(t, b.UnmapShared(each, size))
	}
	require.NoError(t, unix.Close(descriptor))
	assert.Equal(t, before, descriptors(t))
}

func TestAReadOnlyDescriptorMapsNothingForWriting(t *testing.T) {
	descriptor, err := NewSharedFile(page)
	require.NoError(t, err)
	defer unix.Close(descriptor)
	readable, err := ReadOnlyDescriptor(descriptor)
	require.NoError(t, err)
	defer unix.Close(readable)
	b := New().(*Backend)
	_, err = b.MapShared(readable, backends.HostDevice, page, false)
	assert.ErrorIs(t, err, unix.EACCES)
	at, err := b.MapShared(readable, backends.HostDevice, page, true)
	require.NoError(t, err)
	require.NoError(t, b.UnmapShared(at, page))
	for _, each := range []int{descriptor, readable} {
		flags, err := unix.FcntlInt(uintptr(each), unix.F_GETFD, 0)
		require.NoError(t, err)
		assert.NotZero(t, flags&unix.FD_CLOEXEC)
	}
}

func TestWhatIsNoSharedMemoryIsRefused(t *testing.T) {
	b := New().(*Backend)
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, file.Truncate(page))
	cut, err := unix.MemfdCreate("cut", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	defer unix.Close(cut)
	require.NoError(t, unix.Ftruncate(cut, page))
	short, err := NewSharedFile(page)
	require.NoError(t, err)
	defer unix.Close(short)
	for descriptor, why := range map[int]string{int(file.Fd()): "is not of shared memory", cut: "F_SEAL_SHRINK",
		-1: "bad file descriptor"} {
		_, err := b.MapShared(descriptor, backends.HostDevice, page, true)
		assert.ErrorContains(t, err, why)
	}
	_, err = b.MapShared(short, backends.HostDevice, 2*page, true)
	assert.ErrorContains(t, err, "4096 bytes: 8192")
	for _, size := range []int{0, -page, page + 1} {
		_, _, err = b.NewShared(backends.HostDevice, size)
		assert.ErrorContains(t, err, "multiples of 4096")
		_, err = b.MapShared(short, backends.HostDevice, size, true)
		assert.ErrorContains(t, err, "multiples of 4096")
	}
	_, _, err = b.NewShared(0, page)
	assert.ErrorContains(t, err, "no device 0")
	_, err = b.MapShared(short, 0, page, true)
	assert.ErrorContains(t, err, "no device 0")
	_, _, err = b.NewShared(backends.HostDevice, 1<<60)
	var full *backends.OutOfMemoryError
	assert.ErrorAs(t, err, &full)
	at := allocate(t, b, backends.Shared, page, true)
	assert.ErrorContains(t, b.UnmapShared(at, page), "no shared memory of 4096 bytes")
	assert.ErrorContains(t, b.ProtectShared(at, page), "no shared memory of 4096 bytes")
}

func TestNoSharingWithoutDescriptors(t *testing.T) {
	b := New().(*Backend)
	require.NoError(t, b.Shares(backends.HostDevice))
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	before, failed := descriptors(t), 0
	next, err := unix.Dup(0)
	require.NoError(t, err)
	require.NoError(t, unix.Close(next))
	for most := range 3 {
		some := syscall.Rlimit{Cur: uint64(next + most), Max: limit.Max}
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &some))
		at, descriptor, err := b.NewShared(backends.HostDevice, page)
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
		if err == nil {
			require.NoError(t, b.UnmapShared(at, page))
			require.NoError(t, unix.Close(descriptor))
			continue
		}
		assert.ErrorIs(t, err, unix.EMFILE)
		failed++
	}
	assert.GreaterOrEqual(t, failed, 2, "one for each descriptor that is needed")
	assert.Equal(t, before, descriptors(t))
}

func TestWhatIsWrittenToASeparatedMappingNobodyElseSees(t *testing.T) {
	b := New().(*Backend)
	unit, err := b.SharedUnit(backends.HostDevice)
	require.NoError(t, err)
	made, descriptor, err := b.NewShared(backends.HostDevice, unit)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(descriptor)) }()
	other, err := b.MapShared(descriptor, backends.HostDevice, unit, true)
	require.NoError(t, err)
	mine, theirs := bytesAt(made.Address, unit), bytesAt(other.Address, unit)
	mine[0] = 1
	require.NoError(t, b.SeparateShared(made, unit))
	require.NoError(t, b.SeparateShared(made, unit), "it is already")
	mine[0], mine[1] = 2, 3
	assert.Equal(t, []byte{1, 0}, theirs[:2])
	forGood, err := SealShared(descriptor)
	require.NoError(t, err)
	assert.True(t, forGood, "nobody has it mapped for writing")
	mine[2] = 4
	assert.Equal(t, []byte{2, 3, 4}, mine[:3])
	require.NoError(t, b.UnmapShared(made, unit))
	require.NoError(t, b.UnmapShared(other, unit))
	assert.Error(t, b.SeparateShared(made, unit), "it is not mapped")
}

func TestASeparateMappingOfWhatMayNotBeWrittenTo(t *testing.T) {
	b := New().(*Backend)
	unit, err := b.SharedUnit(backends.HostDevice)
	require.NoError(t, err)
	size := 3 * unit
	made, descriptor, err := b.NewShared(backends.HostDevice, size)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(descriptor)) }()
	copy(bytesAt(made.Address, size), pattern(size))
	require.NoError(t, b.ProtectShared(made, size))
	forGood, err := SealShared(descriptor)
	require.NoError(t, err)
	require.True(t, forGood)
	readable, err := ReadOnlyDescriptor(descriptor)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(readable)) }()
	for _, from := range []int{descriptor, readable} {
		own, err := b.MapSeparate(from, backends.HostDevice, size)
		require.NoError(t, err)
		mine := bytesAt(own.Address, size)
		assert.Equal(t, pattern(size), mine)
		mine[unit] = 200
		assert.Equal(t, pattern(size), bytesAt(made.Address, size))
		require.NoError(t, b.ProtectShared(own, size))
		assert.Equal(t, byte(200), mine[unit], "what was written stays")
		assert.ErrorIs(t, written(t, own), unix.EFAULT)
		require.NoError(t, b.UnmapShared(own, size))
	}
	_, err = b.MapSeparate(descriptor, 1, size)
	assert.Error(t, err)
	_, err = b.MapSeparate(descriptor, backends.HostDevice, size+unit)
	assert.ErrorContains(t, err, "are to be mapped")
	_, err = b.MapSeparate(descriptor, backends.HostDevice, size-1)
	assert.ErrorContains(t, err, "multiples of")
	require.NoError(t, b.UnmapShared(made, size))
}
