package cuda

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func TestStreamDevice(t *testing.T) {
	onEachDriver(t, 2, func(t *testing.T, r *rig) {
		for device := range 2 {
			for _, s := range []backends.Stream{r.newStream(t, device), r.newForeignStream(t, r.newContext(t, device))} {
				found, err := r.StreamDevice(s)
				require.NoError(t, err)
				assert.Equal(t, device, found)
			}
		}
		for s := range perThreadStream + 1 {
			found, err := r.StreamDevice(s)
			require.NoError(t, err)
			assert.Equal(t, backends.HostDevice, found, "it means another one on every device")
		}
	})
}

// The driver is not asked of what cannot be a handle: it would follow the address.
func TestMadeUpStreamsAreNotFollowed(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		_, err := r.primaryContext(0)
		require.NoError(t, err)
		for _, s := range []backends.Stream{3, 9, 12345, lowestAddress - 1} {
			_, err := r.StreamDevice(s)
			require.ErrorIs(t, err, backends.ErrNoStream)
		}
		if r.emulated() {
			assert.Zero(t, r.calls("cuStreamGetCtx"))
			return
		}
		for _, s := range []backends.Stream{0xdead0000, 1 << 62, ^backends.Stream(0)} {
			_, err := r.StreamDevice(s)
			require.ErrorIs(t, err, backends.ErrNoStream)
		}
	})
}

// Handles of the emulator are no addresses: it checks them itself, as a misuse.
func TestUnknownStreamsOfTheEmulator(t *testing.T) {
	r := loadEmulated(t, nil) // not emulate, which fails for misuse
	require.NoError(t, r.Probe())
	_, err := r.StreamDevice(0xdead0000)
	require.ErrorIs(t, err, backends.ErrNoStream)
	assert.Equal(t, []string{"cuStreamGetCtx: unknown stream 0xdead0000"}, r.violations())
}

func TestOtherFailuresSayNothingOfAStream(t *testing.T) {
	r := emulate(t, nil)
	foreign := r.newForeignStream(t, r.newContext(t, 0))
	r.fail("cuStreamGetCtx", 1, 700)
	_, err := r.StreamDevice(foreign)
	require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS")
	assert.NotErrorIs(t, err, backends.ErrNoStream)
	r.stopFailing()
}

func TestMapped(t *testing.T) {
	page, err := syscall.Mmap(-1, 0, int(pageSize), syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	address := uintptr(unsafe.Pointer(unsafe.SliceData(page)))
	assert.True(t, isMapped(address))
	assert.True(t, isMapped(address+pageSize-1))
	require.NoError(t, syscall.Munmap(page))
	assert.False(t, isMapped(address))
	assert.False(t, isMapped(^uintptr(0)))
}
