package shares

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lane is memory that a process shares with the maker of what it opens, and in which it notes what it has open of
// that one's: a store where a message would wake the maker. The maker reads it only when a lease has ended, to
// know whether one of those that could have the memory was killed with it. So it is by the lease's
// descriptor that memory stays; a lane only says whose end is to be awaited after that.
//
// Its first word is the maker's, which sets it when it watches the process that the lane is of. Before,
// and where it never does, messages say what is open. Word n has the generation of the share that is
// open and has slot n of the maker's, or 0.
type lane struct {
	words *[laneWords]uint64
	open  map[int]*noted // by slot
	used  uint64         // when last
}

type noted struct {
	generation uint64
	times      int
}

const (
	leaseOpens = 1
	leaseEnds  = 0
	laneWords  = 4096
	laneBytes  = laneWords * 8
	laneIsRead = 1
	// mostMakers is how many processes this one has lanes for; of others it tells by messages.
	mostMakers = 64
)

// makerKey is whom a lane is sent to: a frame may name another maker than the process whose socket goes with it.
type makerKey struct {
	maker   id
	process int32
}

// lanes are this process's, whatever Runtime opens something.
type lanes struct {
	mu   sync.Mutex
	to   map[makerKey]*lane
	uses uint64
}

var ownLanes lanes

// opens tells a lease's maker that this process has the memory, and returns the lane that says so; nil where a
// message does. Nobody waits for it.
func (l *lanes) opens(n note, lease int) *lane {
	peer, err := unix.GetsockoptUcred(lease, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if n.slot <= 0 || n.slot >= laneWords || n.generation == 0 || err != nil || peer.Pid <= 0 {
		tell(lease, leaseOpens)
		return nil
	}
	key := makerKey{n.maker, peer.Pid}
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.to[key]
	if found == nil {
		if !l.begin(key, lease) {
			tell(lease, leaseOpens)
		}
		return nil
	}
	l.uses++
	found.used = l.uses
	if !found.note(n) {
		tell(lease, leaseOpens)
		return nil
	}
	return found
}

// note reports whether the lane has it now: not if its maker does not read it, nor if another share has
// the slot, of which one of the two frames lies.
func (a *lane) note(n note) bool {
	if atomic.LoadUint64(&a.words[0]) != laneIsRead {
		return false
	}
	known := a.open[n.slot]
	if known == nil {
		known = &noted{generation: n.generation}
		a.open[n.slot] = known
	}
	if known.generation != n.generation {
		return false
	}
	known.times++
	atomic.StoreUint64(&a.words[n.slot], n.generation)
	return true
}

// ends takes back what opens has told.
func (l *lanes) ends(n note, lease int, found *lane) {
	if found == nil {
		tell(lease, leaseEnds)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := found.open[n.slot]
	if known.times--; known.times == 0 {
		delete(found.open, n.slot)
		//mutate:remove what a lane says stays where its process has let go of it
		atomic.StoreUint64(&found.words[n.slot], 0)
	}
}

// begin makes a lane for a maker, and sends it with the message that says that the lease is open. It reports
// whether that was said.
func (l *lanes) begin(maker makerKey, lease int) bool {
	if len(l.to) >= mostMakers && !l.dropOldest() {
		return false
	}
	file, words, err := newLane()
	if err != nil {
		return false
	}
	err = unix.Sendmsg(lease, []byte{leaseOpens}, unix.UnixRights(file), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	_ = unix.Close(file) // the mapping stays
	made := &lane{words: words, open: map[int]*noted{}}
	if err != nil {
		made.unmap()
		return false
	}
	if l.to == nil {
		l.to = map[makerKey]*lane{}
	}
	l.uses++
	made.used = l.uses
	l.to[maker] = made
	return true
}

// dropOldest gives up the lane that says nothing and was not used for longest, and reports whether there was one.
func (l *lanes) dropOldest() bool {
	var oldest *lane
	var its makerKey
	for maker, each := range l.to {
		if len(each.open) == 0 && (oldest == nil || each.used < oldest.used) {
			oldest, its = each, maker
		}
	}
	if oldest == nil {
		return false
	}
	delete(l.to, its)
	oldest.unmap()
	return true
}

// newLane returns a file of zeros that never gets shorter or longer, and where it is mapped, which a forked child has
// not.
func newLane() (file int, words *[laneWords]uint64, err error) {
	if file, err = unix.MemfdCreate("hamr-lane", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return -1, nil, err
	}
	var mapped []byte
	err = unix.Ftruncate(file, laneBytes)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, laneSeals)
	}
	if err == nil {
		mapped, err = unix.Mmap(file, 0, laneBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return -1, nil, errors.Join(err, unix.Close(file))
	}
	words = (*[laneWords]uint64)(unsafe.Pointer(unsafe.SliceData(mapped)))
	if err = unix.Madvise(mapped, unix.MADV_DONTFORK); err != nil {
		return -1, nil, errors.Join(err, unix.Munmap(mapped), unix.Close(file))
	}
	return file, words, nil
}

const laneSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

func (a *lane) unmap() {
	_ = unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(a.words)), laneBytes))
}

// tell says on a lease's end that this process has the memory, or has not any more. Nobody waits for it.
func tell(lease int, what byte) {
	_ = unix.Sendto(lease, []byte{what}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
}
