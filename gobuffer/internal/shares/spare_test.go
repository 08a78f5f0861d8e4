package shares

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// spare is the descriptors of the lease that was made ahead, -1 without one.
func spare() [2]int {
	ends := SpareEnds()
	return [2]int{int(ends[0].Load()) - 1, int(ends[1].Load()) - 1}
}

func TestALeaseIsMadeAheadOnce(t *testing.T) {
	_, here, there := sharers(t)
	lendsOnce(t, here, there) // the watcher is there
	none := [2]int{-1, -1}
	require.Equal(t, none, spare())
	before := openFiles(t)
	Prepare()
	made := spare()
	require.NotContains(t, made, -1)
	for _, end := range made {
		flags, err := unix.FcntlInt(uintptr(end), unix.F_GETFD, 0)
		require.NoError(t, err)
		assert.NotZero(t, flags&unix.FD_CLOEXEC, "a program that is executed has neither")
	}
	Prepare()
	assert.Equal(t, made, spare())
	assert.Equal(t, before+2, openFiles(t))

	shared := lendsNew(t, here)
	assert.Contains(t, shared.Descriptors(), made[1])
	assert.Equal(t, none, spare(), "a forked child closes what is nobody's")
	require.NoError(t, shared.Close())
	ends(t, here)
	assert.Equal(t, before, openFiles(t))
}

func TestLeasesAreMadeAheadBesideThoseThatAreTaken(t *testing.T) {
	_, here, there := sharers(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				shared, err := here.lends()
				if !assert.NoError(t, err) {
					return
				}
				Prepare()
				theirs, err := there.opens(shared.Frame(), shared.Descriptors())
				if assert.NoError(t, err) {
					assert.NoError(t, theirs.End())
				}
				assert.NoError(t, shared.Close())
			}
		})
	}
	group.Wait()
	ends(t, here)
	Prepare()
	lendsOnce(t, here, there)
	assert.Equal(t, [2]int{-1, -1}, spare())
}
