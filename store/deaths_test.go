package store

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// readable is a descriptor as of a process, which has ended or lives.
func readable(t *testing.T, is uint) int {
	t.Helper()
	descriptor, err := unix.Eventfd(is, unix.EFD_CLOEXEC)
	require.NoError(t, err)
	return descriptor
}

func TestTheConnectionOfADeadProcessIsClosed(t *testing.T) {
	d, err := newDeaths()
	require.NoError(t, err)
	defer d.close()
	dead, living := os.NewFile(uintptr(readable(t, 0)), "dead"), os.NewFile(uintptr(readable(t, 0)), "living")
	defer living.Close()
	stopDead, stopLiving := d.add(dead, readable(t, 1)), d.add(living, readable(t, 0))
	eventually(t, func() bool { _, err := dead.Write(make([]byte, 8)); return err != nil }, func() any { return "open" })
	stopDead()
	_, err = living.Write(make([]byte, 8))
	require.NoError(t, err)
	stopLiving()
}

// A process ends while its connection does, and the next connection's descriptor has the same number.
func TestADeathIsNobodyElses(t *testing.T) {
	d, err := newDeaths()
	require.NoError(t, err)
	defer d.close()
	closed := 0
	for n := range 20_000 {
		gone, next := os.NewFile(uintptr(readable(t, 0)), "gone"), os.NewFile(uintptr(readable(t, 0)), "next")
		d.add(gone, readable(t, 1))()
		stop := d.add(next, readable(t, 0))
		for range n % 64 {
			runtime.Gosched()
		}
		stop()
		if _, err := next.Write(make([]byte, 8)); err != nil {
			closed++
		}
		_, _ = gone.Close(), next.Close()
	}
	assert.Zero(t, closed, "connections of processes that live")
}
