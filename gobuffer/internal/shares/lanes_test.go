package shares

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hasLane has a process begin its lane, and returns when shares that it opens are noted in it.
func hasLane(t *testing.T, here *party, o *opener) {
	t.Helper()
	require.Eventually(t, func() bool {
		shared := lendsNew(t, here)
		o.open('?', shared)
		noted := o.tell(tellNoted, 0, nil)
		o.tell(tellClose, '?', nil)
		require.NoError(t, shared.Close())
		return noted == 1
	}, time.Minute, time.Millisecond)
	ends(t, here)
}

// stays checks for a while that so much memory is there.
func stays(t *testing.T, here *party, live int) {
	t.Helper()
	for range 20 {
		require.Equal(t, live, int(here.live.Load()))
		time.Sleep(time.Millisecond)
	}
}

func TestWhatALaneSaysIsKeptUntilItsProcessHasEnded(t *testing.T) {
	_, here, _ := sharers(t)
	before := openFiles(t)
	users := []*opener{newOpener(t), newOpener(t)}
	shared := []*sent{}
	for _, each := range users {
		hasLane(t, here, each)
	}
	for range users {
		shared = append(shared, lendsNew(t, here))
	}
	users[0].open('a', shared[0])
	users[0].open('b', shared[0]) // the same once more
	users[0].open('c', shared[1])
	users[1].open('c', shared[1])
	assert.Equal(t, byte(2), users[0].tell(tellNoted, 0, nil))
	for _, each := range shared {
		require.NoError(t, each.Close())
	}
	users[0].tell(tellClose, 'a', nil)
	assert.Equal(t, byte(2), users[0].tell(tellNoted, 0, nil))
	users[0].tell(tellLose, 0, nil)
	stays(t, here, 2)
	users[1].tell(tellClose, 'c', nil)
	stays(t, here, 2)
	users[0].kill()
	ends(t, here)
	users[1].kill()
	// What watches stays.
	require.Eventually(t, func() bool { return openFiles(t) <= before+1 }, time.Minute, time.Millisecond)
}

func TestSharesWithoutASlotAreToldByMessages(t *testing.T) {
	_, here, _ := sharers(t)
	user := newOpener(t)
	hasLane(t, here, user)
	inLane := lendsNew(t, here)
	fillSlots(here)
	beside := lendsNew(t, here)
	user.open('a', inLane)
	user.open('b', beside)
	assert.Equal(t, byte(1), user.tell(tellNoted, 0, nil))
	require.NoError(t, inLane.Close())
	require.NoError(t, beside.Close())
	user.tell(tellLose, 0, nil)
	stays(t, here, 2)
	user.kill()
	ends(t, here)
}

// The oldest lane that says nothing goes: its maker is told by messages, and reads a new one then.
func TestFewLanesAreKept(t *testing.T) {
	b, first, there := sharers(t)
	lendsOnce(t, first, there)
	for range mostMakers + 3 {
		lendsOnce(t, &party{backend: b}, there)
	}
	assert.Equal(t, mostMakers, lanesMade())
	assert.Zero(t, notedShares())
	lendsOnce(t, first, there)
}

// Who lies keeps what he could keep by having it open, and nobody is disturbed.
func TestLanesThatLie(t *testing.T) {
	_, here, there := sharers(t)
	lendsOnce(t, here, there) // what watches stays, and the lane
	before := openFiles(t)
	memory := func(seals int, size int64) int {
		file, err := unix.MemfdCreate("lane", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		require.NoError(t, unix.Ftruncate(file, size))
		_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, seals)
		require.NoError(t, err)
		return file
	}
	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	null, err := unix.Open("/dev/zero", unix.O_RDWR|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	const whole = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	lies := [][]int{
		{pipe[0]}, {null}, {memory(0, 1<<15)}, {memory(unix.F_SEAL_GROW, 1<<15)},
		{memory(whole|unix.F_SEAL_WRITE, 1<<15)}, {memory(whole, 0)}, {pipe[0], pipe[1]}, {pipe[0], pipe[1], null, null},
	}
	for _, files := range lies {
		for _, message := range [][]byte{{1}, {0}, {9}, {}} {
			shared, honest := lendsNew(t, here), lendsNew(t, here)
			lease := shared.Descriptors()[0]
			require.NoError(t, unix.Sendmsg(lease, message, unix.UnixRights(files...), nil, 0))
			theirs, err := there.opens(honest.Frame(), honest.Descriptors())
			require.NoError(t, err)
			require.NoError(t, honest.Close())
			stays(t, here, 2)
			require.NoError(t, unix.Sendto(lease, []byte{0}, 0, nil))
			require.NoError(t, shared.Close())
			require.NoError(t, theirs.End())
			ends(t, here)
		}
	}
	for _, each := range slices.Concat(lies[0:6]...) {
		require.NoError(t, unix.Close(each))
	}
	require.NoError(t, unix.Close(pipe[1]))
	require.Eventually(t, func() bool { return openFiles(t) == before }, time.Minute, time.Millisecond)
}

// Who has a maker's frame, and a socket of his own, gets a lane that the maker is never told by.
func TestALaneIsOfTheProcessWhoseSocketItIs(t *testing.T) {
	_, here, there := sharers(t)
	liar := newOpener(t)
	socket := liar.makes()
	shared := lendsNew(t, here)
	dropLanes()
	before := lanesMade()
	theirs, err := there.opens(shared.Frame(), []int{socket})
	require.NoError(t, err)
	assert.Equal(t, before+1, lanesMade())
	again, err := there.opens(shared.Frame(), shared.Descriptors())
	require.NoError(t, err)
	assert.Equal(t, before+2, lanesMade())
	require.NoError(t, errors.Join(theirs.End(), again.End(), shared.Close(), unix.Close(socket)))
	ends(t, here)
	liar.kill()
}

// Many lanes of one process are refused, with what came.
func TestManyLanesOfOneProcess(t *testing.T) {
	_, here, there := sharers(t)
	lendsOnce(t, here, there)
	before := openFiles(t)
	shared := lendsNew(t, here)
	for range 50 {
		file, err := unix.MemfdCreate("lane", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		require.NoError(t, err)
		require.NoError(t, unix.Ftruncate(file, 1<<15))
		_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
		require.NoError(t, err)
		require.NoError(t, unix.Sendmsg(shared.Descriptors()[0], []byte{0}, unix.UnixRights(file), nil, 0))
		require.NoError(t, unix.Close(file))
	}
	require.NoError(t, shared.Close())
	ends(t, here)
	assert.LessOrEqual(t, openFiles(t), before+2*8)
}

// holding is what the model knows of a share: whether its handle is open, and who has it by which name.
type holding struct {
	shared *sent
	users  map[*opener]byte
	lost   map[*opener]bool // who cannot let go of it any more, and has not ended
}

func (h *holding) held() bool { return h.shared != nil || len(h.users)+len(h.lost) > 0 }

// Processes open, let go and are killed in any order, of shares with and without slots, beside a model.
func TestRandomUsers(t *testing.T) {
	_, here, _ := sharers(t)
	chance := rand.New(rand.NewPCG(15, 23))
	var users []*opener
	for range 3 {
		users = append(users, newOpener(t))
	}
	var list []*holding
	name := byte(0)
	for step := range 600 {
		if step == 300 {
			fillSlots(here)
		}
		user := users[chance.IntN(len(users))]
		list = slices.DeleteFunc(list, func(h *holding) bool { return !h.held() })
		var h *holding
		if len(list) > 0 {
			h = list[chance.IntN(len(list))]
		}
		switch chance.IntN(10) {
		case 0, 1:
			if len(list) < 12 {
				list = append(list, &holding{lendsNew(t, here), map[*opener]byte{}, map[*opener]bool{}})
			}
		case 2, 3, 4:
			if _, has := h.of(user); h != nil && h.shared != nil && !has {
				name++
				user.open(name, h.shared)
				h.users[user] = name
			}
		case 5:
			if h != nil && h.shared != nil {
				require.NoError(t, h.shared.Close())
				h.shared = nil
			}
		case 6, 7:
			if its, has := h.of(user); has {
				user.tell(tellClose, its, nil)
				delete(h.users, user)
			}
		case 8:
			if chance.IntN(4) == 0 {
				user.tell(tellLose, 0, nil)
				for _, each := range list {
					if _, has := each.users[user]; has {
						delete(each.users, user)
						each.lost[user] = true
					}
				}
			}
		case 9:
			if chance.IntN(4) == 0 {
				user.kill()
				for _, each := range list {
					delete(each.users, user)
					delete(each.lost, user)
				}
				users[slices.Index(users, user)] = newOpener(t)
			}
		}
		live := 0
		for _, each := range list {
			if each.held() {
				live++
			}
		}
		require.GreaterOrEqual(t, int(here.live.Load()), live, "step %d", step)
		if step%10 == 0 {
			require.Eventually(t, func() bool { return int(here.live.Load()) == live }, time.Minute, time.Millisecond, "step %d",
				step)
		}
	}
	for _, each := range users {
		each.kill()
	}
	for _, each := range list {
		if each.shared != nil {
			require.NoError(t, each.shared.Close())
		}
	}
	ends(t, here)
}

func (h *holding) of(user *opener) (name byte, has bool) {
	if h == nil {
		return 0, false
	}
	name, has = h.users[user]
	return name, has
}
