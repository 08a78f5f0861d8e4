package shares

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const userOfShare = "HAMR_TEST_USER_OF_SHARE"

// TestMain is a user of shares where the environment says so: it has what comes by descriptors from 3 on, closes
// these, as the kernel does before it is done with a process, and waits for its end.
func TestMain(m *testing.M) {
	if os.Getenv(openerOfShares) != "" {
		if err := openShares(); err != nil {
			panic(err)
		}
		return
	}
	if told := os.Getenv(userOfShare); told != "" {
		count, err := strconv.Atoi(told)
		for lease := 3; lease < 3+count && err == nil; lease++ {
			if err = unix.Sendto(lease, []byte{1}, 0, nil); err == nil {
				err = unix.Close(lease)
			}
		}
		if err == nil {
			_, err = os.Stdout.WriteString("ready\n")
		}
		if err != nil {
			panic(err)
		}
		select {}
	}
	os.Exit(m.Run())
}

// sharer starts a process that has what the leases are of, and returns when it has.
func sharer(t *testing.T, leases ...int) *os.Process {
	t.Helper()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	files := []*os.File{null, in, os.Stderr}
	for _, lease := range leases {
		number, err := unix.FcntlInt(uintptr(lease), unix.F_DUPFD_CLOEXEC, 0)
		require.NoError(t, err)
		files = append(files, os.NewFile(uintptr(number), "lease"))
	}
	program, err := os.Executable()
	require.NoError(t, err)
	made, err := os.StartProcess(program, []string{program},
		&os.ProcAttr{Env: append(os.Environ(), userOfShare+"="+strconv.Itoa(len(leases))), Files: files})
	require.NoError(t, err)
	for _, each := range append(files[:2:2], files[3:]...) {
		require.NoError(t, each.Close())
	}
	said := make([]byte, 6)
	_, err = out.Read(said)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(said), "ready"))
	return made
}

func kill(t *testing.T, users ...*os.Process) {
	for _, each := range users {
		require.NoError(t, each.Kill())
		_, err := each.Wait()
		require.NoError(t, err)
	}
}

func TestUsersThatAreKilledLetGo(t *testing.T) {
	_, here, _ := sharers(t)
	first, second := lendsNew(t, here), lendsNew(t, here)
	both := sharer(t, first.Descriptors()[0], second.Descriptors()[0])
	others := []*os.Process{sharer(t, second.Descriptors()[0]), sharer(t, second.Descriptors()[0])}
	require.NoError(t, errors.Join(first.Close(), second.Close()))
	stays := func(live int) {
		t.Helper()
		time.Sleep(20 * time.Millisecond) // it is told that nobody can get the memory, but whose end it waits for
		assert.Equal(t, live, int(here.live.Load()))
	}
	stays(2)
	kill(t, others[0])
	stays(2)
	kill(t, both)
	require.Eventually(t, func() bool { return int(here.live.Load()) == 1 }, time.Minute, time.Millisecond)
	stays(1)
	kill(t, others[1])
	ends(t, here)
}

// Many leases at a time begin and end, each by itself, and leave no descriptor.
func TestManyLeases(t *testing.T) {
	_, here, there := sharers(t)
	lendsOnce(t, here, there) // what watches stays, and the lane
	before := openFiles(t)
	const goroutines, each = 4, 50
	list := make([]*sent, goroutines*each)
	for i := range list {
		list[i] = lendsNew(t, here)
	}
	kept := make([]*Attachment, goroutines)
	var all sync.WaitGroup
	for i := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			for n, shared := range list[i*each : (i+1)*each] {
				theirs, err := there.opens(shared.Frame(), shared.Descriptors())
				if !assert.NoError(t, errors.Join(err, shared.Close())) {
					return
				}
				if n == each/2 {
					kept[i] = theirs
					continue
				}
				assert.NoError(t, theirs.End())
			}
		}()
	}
	all.Wait()
	require.Eventually(t, func() bool { return int(here.live.Load()) == goroutines }, time.Minute, time.Millisecond)
	for _, theirs := range kept {
		require.NoError(t, theirs.End())
	}
	ends(t, here)
	require.Eventually(t, func() bool { return openFiles(t) == before }, time.Minute, time.Millisecond)
}

// Nobody hears more of one who talks than of another.
func TestALeaseOfWhichMuchIsSaid(t *testing.T) {
	_, here, there := sharers(t)
	shared := lendsNew(t, here)
	for range 300 {
		theirs, err := there.opens(shared.Frame(), shared.Descriptors())
		require.NoError(t, err)
		require.NoError(t, theirs.End())
	}
	assert.Equal(t, 1, int(here.live.Load()))
	require.NoError(t, shared.Close())
	ends(t, here)
}
