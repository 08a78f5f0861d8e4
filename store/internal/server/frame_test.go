package server

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/arrayiface"
	"hamr/store/internal/memory"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// silent is a transport to nobody.
type silent struct{}

func (silent) Send([]byte, []int) error { return nil }

func greeting() []byte {
	var e protocol.Encoder
	at := e.Begin(protocol.OpHello, 0, 1)
	e.U32(protocol.ProtocolVersion)
	e.U32(uint32(os.Getpid()))
	boot, _ := wire.BootID()
	e.Text(boot)
	e.End(at)
	return e.Bytes
}

// seedFrames are requests that are right, of each operation.
func seedFrames() [][]byte {
	var list [][]byte
	frame := func(operation uint16, build func(*protocol.Encoder)) {
		var e protocol.Encoder
		at := e.Begin(operation, 0, uint64(len(list)+2))
		build(&e)
		e.End(at)
		list = append(list, e.Bytes)
	}
	id := protocol.ID{1}
	for _, size := range []int{0, 100, 100_000} {
		frame(protocol.OpCreate, func(e *protocol.Encoder) {
			e.U8(protocol.FlagEvictable)
			e.ID(protocol.ID{})
			e.U64(uint64(size))
			e.U64(uint64(size))
			protocol.EncodeLayout(e, arrayiface.Uint8, []int{size})
			e.Text(`{"a": 1}`)
		})
	}
	frame(protocol.OpCreate, func(e *protocol.Encoder) {
		e.U8(0)
		e.ID(protocol.ID{5})
		e.U64(64)
		e.U64(1 << 21)
		protocol.EncodeLayout(e, arrayiface.Float64, []int{2, 4})
		e.Blob(nil)
	})
	for _, operation := range []uint16{
		protocol.OpAttach, protocol.OpSeal, protocol.OpAbort, protocol.OpExists, protocol.OpDescribe,
	} {
		frame(operation, func(e *protocol.Encoder) { e.ID(id) })
	}
	frame(protocol.OpGet, func(e *protocol.Encoder) { e.ID(id); e.U8(protocol.FlagNeeded | protocol.FlagUnsafe) })
	frame(protocol.OpRelease, func(e *protocol.Encoder) { e.U32(1); e.ID(id); e.U32(1) })
	frame(protocol.OpForget, func(e *protocol.Encoder) { e.U32(1); e.ID(id) })
	frame(protocol.OpUndo, func(e *protocol.Encoder) { e.U64(7) })
	frame(protocol.OpDelete, func(e *protocol.Encoder) { e.ID(id); e.Flag(true) })
	frame(protocol.OpPutName, func(e *protocol.Encoder) { e.Text("name"); e.ID(id); e.Flag(true) })
	frame(protocol.OpGetName, func(e *protocol.Encoder) { e.Text("name"); e.U64(0) })
	frame(protocol.OpGetName, func(e *protocol.Encoder) { e.Text("name"); e.U64(1000) })
	frame(protocol.OpDropName, func(e *protocol.Encoder) { e.Text("name") })
	frame(protocol.OpList, func(e *protocol.Encoder) { e.U64(0); e.U32(10); e.U8(7); e.Text("n") })
	frame(protocol.OpSetMetadata, func(e *protocol.Encoder) { e.ID(id); e.Text(`[1.5, "\ud83d\ude00"]`) })
	frame(protocol.OpWait, func(e *protocol.Encoder) { e.U64(0); e.U32(1); e.U32(2); e.ID(id); e.ID(protocol.ID{2}) })
	frame(protocol.OpEvents, func(e *protocol.Encoder) { e.U64(0) })
	frame(protocol.OpStatistics, func(e *protocol.Encoder) {})
	frame(protocol.OpMark, func(e *protocol.Encoder) { e.ID(id); e.U8(protocol.MarkPinned); e.Flag(true) })
	frame(protocol.OpHoldUnit, func(e *protocol.Encoder) { e.ID(id); e.U64(1 << 18); e.U64(64) })
	frame(protocol.OpHold, func(e *protocol.Encoder) {
		e.ID(id)
		e.U32(1)
		e.U8(protocol.OwnMemory)
		e.ID(protocol.ID{})
		e.U64(0)
		e.U64(uint64(protocol.PageSize))
		var layout protocol.Encoder
		protocol.EncodeLayout(&layout, arrayiface.Uint8, []int{100})
		protocol.EncodeTold(e, &protocol.Told{Layout: layout.Bytes, Bytes: 100, Sealed: true})
	})
	frame(protocol.OpRemember, func(e *protocol.Encoder) {})
	return append(list, holding(id, 1))
}

// FuzzFrames has a server read packets of anybody's, none of which may make others wait for long.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	for _, seed := range seedFrames() {
		f.Add(seed, uint8(0))
		f.Add(append(append([]byte(nil), seedFrames()[1]...), seed...), uint8(1))
	}
	folder := filepath.Join(f.TempDir(), "s")
	require.NoError(f, os.Mkdir(folder, 0o700))
	s, err := newServer(Options{HostLimit: 8 << 20, DeviceLimit: 8 << 20, TableLimit: 1 << 20, Spill: folder})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, packet []byte, descriptors uint8) {
		fuzzOnce(t, s, descriptors, packet)
	})
}

func fuzzOnce(t testing.TB, s *Server, descriptors uint8, packets ...[]byte) {
	c := conversationOf(s)
	err := c.handle(greeting(), nil)
	for _, packet := range packets {
		if err != nil {
			break
		}
		if len(packet) > protocol.MostPacket {
			packet = packet[:protocol.MostPacket]
		}
		var sent []int
		for range descriptors % (protocol.MostDescriptors + 1) {
			sent = append(sent, memoryOf(t, []int64{0, protocol.PageSize, 1 << 18}[descriptors/16%3]))
		}
		bounded(t, packet, func() { err = c.handle(packet, sent) })
	}
	if err != nil {
		require.ErrorAs(t, err, new(*protocol.ProtocolError))
	}
	s.leave(c, err)
	f := s.Statistics()
	ok := f.Table <= f.TableLimit && f.Leases == 0 && f.Sessions == 0 && f.Unsealed == 0 &&
		len(f.Memories) <= memory.MostDomains+8
	for _, m := range f.Memories {
		ok = ok && m.Used <= m.Limit && m.Used >= 0 && m.Lingering == 0
	}
	if !ok {
		require.Fail(t, "what a connection leaves behind", "%+v", f)
	}
}

// memoryOf is a descriptor of some memory, as clients tell servers of.
func memoryOf(t testing.TB, bytes int64) int {
	t.Helper()
	number, err := unix.MemfdCreate("fuzzed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	require.NoError(t, unix.Ftruncate(number, bytes))
	_, err = unix.FcntlInt(uintptr(number), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_FUTURE_WRITE)
	require.NoError(t, err)
	return number
}

// lie changes packets that are right.
func lie(random *rand.Rand, seeds [][]byte) []byte {
	var packet []byte
	for range 1 + random.IntN(3) {
		packet = append(packet, seeds[random.IntN(len(seeds))]...)
	}
	switch random.IntN(4) {
	case 0:
		for range 1 + random.IntN(4) {
			packet[random.IntN(len(packet))] = byte(random.IntN(256))
		}
	case 1:
		packet = packet[:random.IntN(len(packet))]
	case 2:
		at := random.IntN(len(packet) - 3)
		binary.LittleEndian.PutUint32(packet[at:], []uint32{0, 1<<32 - 1, 1 << 31, 1 << 16}[random.IntN(4)])
	}
	return packet
}

func TestFramesThatLie(t *testing.T) {
	before := descriptorNames(t)
	s, err := newServer(Options{HostLimit: 8 << 20, DeviceLimit: 8 << 20, TableLimit: 1 << 20})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 1))
	seeds := seedFrames()
	for range scaled(20_000) {
		var packets [][]byte
		for range 1 + random.IntN(5) {
			packets = append(packets, lie(random, seeds))
		}
		fuzzOnce(t, s, uint8(random.IntN(3)+16*random.IntN(3)), packets...)
	}
	for _, o := range s.table.Objects {
		s.table.Remove(o, true, protocol.Deleted)
	}
	empty(t, s)
	assert.Equal(t, before, descriptorNames(t))
}

// descriptorNames are what this process has open of what a store deals with.
func descriptorNames(t *testing.T) (names []string) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range list {
		name, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err == nil && !strings.Contains(name, "anon_inode") && !strings.HasPrefix(name, "/proc/") {
			names = append(names, name)
		}
	}
	return names
}
