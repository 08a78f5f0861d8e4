package staging

import (
	"bytes"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBytesGoAroundTheCachesWhole copies every length and alignment about the blocks' bounds.
func TestBytesGoAroundTheCachesWhole(t *testing.T) {
	from := randomBytes(rand.New(rand.NewPCG(1, 9)), 8192)
	for _, length := range []int{0, 1, 63, 255, 256, 1023, 1024, 1025, 1300, 4095, 4096, 5000} {
		for start := range 70 {
			for _, source := range []int{0, 1, 31, 64} {
				to, want := make([]byte, 6000), make([]byte, 6000)
				copyAround(to[start:start+length], from[source:source+length])
				copy(want[start:], from[source:source+length])
				require.True(t, bytes.Equal(want, to), "%d bytes from %d to %d", length, source, start)
			}
		}
	}
}

func TestFreshMemoryIsTold(t *testing.T) {
	memory, err := syscall.Mmap(-1, 0, smallestFresh, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(memory)) }()
	assert.True(t, fresh(memory))
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	assert.False(t, fresh(memory))
	assert.False(t, fresh(memory[:smallestFresh/2]))
}

// TestPiecesFollowEachOther cuts what has any length and alignment.
func TestPiecesFollowEachOther(t *testing.T) {
	host := make([]byte, 3000)
	for _, size := range []int{1, 2, 7, 64, 1000} {
		for _, small := range []int{0, 1, 6} {
			for _, part := range [][]byte{host[:1], host[:63], host[5:1000], host[64:], host} {
				for _, up := range []bool{true, false} {
					bounds := Whole(part).cut(size, 1, small, up)
					assert.Zero(t, bounds[0])
					assert.Equal(t, len(part), bounds[len(bounds)-1])
					for i := range len(bounds) - 1 {
						assert.Greater(t, bounds[i+1], bounds[i])
						assert.LessOrEqual(t, bounds[i+1]-bounds[i], size)
					}
				}
			}
		}
	}
}
