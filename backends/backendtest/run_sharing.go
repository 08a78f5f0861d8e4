package backendtest

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/backends"
)

// otherSetting has the device's number in a process that Run has started to share memory with.
const otherSetting = "HAMR_BACKENDTEST_OTHER"

// sharing tests memory of one device that is shared by descriptor.
type sharing struct {
	suite
	able backends.Sharer
	unit int
}

// shares is the test of a backend's sharing on a device, or nil.
func shares(t *testing.T, b backends.Backend, device int, o Options) *sharing {
	able, ok := backends.As[backends.Sharer](b)
	if !ok {
		return nil
	}
	err := able.Shares(device)
	if errors.Is(err, backends.ErrUnavailable) {
		return nil
	}
	require.NoError(t, err)
	unit, err := able.SharedUnit(device)
	require.NoError(t, err)
	s := &sharing{suite: suite{b: b, o: o, device: device, context: max(device, 0)}, able: able, unit: unit}
	s.streams, _ = backends.As[backends.Streams](b)
	return s
}

// gone fails t where this process has memory still that was a file's, open or mapped. The memory of
// devices that are none tells by its inode; what a driver opens is not told apart.
func gone(t *testing.T, file unix.Stat_t) {
	t.Helper()
	if file.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, each := range list {
		var open unix.Stat_t
		if unix.Stat("/proc/self/fd/"+each.Name(), &open) == nil {
			assert.False(t, open.Ino == file.Ino && open.Dev == file.Dev, "descriptor %s is left", each.Name())
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		if fields := strings.Fields(line); len(fields) > 5 && strings.HasPrefix(fields[5], "/memfd:") {
			assert.NotEqual(t, strconv.FormatUint(file.Ino, 10), fields[4], "a mapping is left: %s", line)
		}
	}
}

func status(t *testing.T, descriptor int) (file unix.Stat_t) {
	t.Helper()
	require.NoError(t, unix.Fstat(descriptor, &file))
	return file
}

func (s *sharing) create(t *testing.T, size int) (backends.Region, int) {
	t.Helper()
	at, descriptor, err := s.able.NewShared(s.device, size)
	require.NoError(t, err)
	flags, err := unix.FcntlInt(uintptr(descriptor), unix.F_GETFD, 0)
	require.NoError(t, err)
	assert.NotZero(t, flags&unix.FD_CLOEXEC, "it is closed on exec")
	return at, descriptor
}

func (s *sharing) mapped(t *testing.T, descriptor, size int, readOnly bool) backends.Region {
	t.Helper()
	at, err := s.able.MapShared(descriptor, s.device, size, readOnly)
	require.NoError(t, err)
	assert.Equal(t, s.device, at.Device)
	assert.Equal(t, s.b.Name(), at.Allocator.Backend())
	return at
}

func (s *sharing) end(t *testing.T, at backends.Region, size int) {
	t.Helper()
	s.wait(t, 0)
	assert.NoError(t, s.able.UnmapShared(at, size))
}

// refuses has the device, or the kernel on the host's behalf, not write there.
func (s *sharing) refuses(t *testing.T, at backends.Region, size int) {
	t.Helper()
	was := s.read(t, at, size, 0)
	if s.device == backends.HostDevice {
		var pipe [2]int
		require.NoError(t, unix.Pipe(pipe[:]))
		defer unix.Close(pipe[0])
		defer unix.Close(pipe[1])
		_, err := unix.Write(pipe[1], []byte{^was[0]})
		require.NoError(t, err)
		_, err = unix.Read(pipe[0], hostBytes(at.Address, 1))
		assert.ErrorIs(t, err, unix.EFAULT)
	} else {
		assert.Error(t, s.b.Fill(at, []byte{^was[0]}, size, 0))
		_, host := scratch(t, size)
		_, err := s.b.Copy(at, host, size, 0)
		assert.Error(t, err)
	}
	equal(t, was, s.read(t, at, size, 0), "after a write was refused")
}

func (s *sharing) testOneProcess(t *testing.T) {
	size := 2 * s.unit
	made, descriptor := s.create(t, size)
	file := status(t, descriptor)
	first, second := s.mapped(t, descriptor, size, false), s.mapped(t, descriptor, size, true)
	require.NoError(t, unix.Close(descriptor))
	all := []backends.Region{made, first, second}
	for i, writer := range all[:2] {
		require.NoError(t, s.b.Fill(writer, []byte{byte(i + 1)}, size, 0))
		s.wait(t, 0)
		for _, reader := range all {
			equal(t, repeated(byte(i+1), size), s.read(t, reader, size, 0), "each mapping has what one was given")
		}
	}
	s.located(t, first, size)
	s.refuses(t, second, size)
	require.NoError(t, s.able.ProtectShared(made, size))
	require.NoError(t, s.able.ProtectShared(second, size), "what is read-only")
	s.refuses(t, made, size)
	require.NoError(t, s.b.Fill(first, []byte{9}, size, 0), "another mapping stays as it was")
	s.wait(t, 0)
	s.end(t, first, size)
	equal(t, repeated(9, size), s.read(t, made, size, 0), "after a mapping's end")
	s.end(t, second, size)
	s.end(t, made, size)
	gone(t, file)
}

func (s *sharing) located(t *testing.T, at backends.Region, size int) {
	locator, ok := backends.As[backends.Locator](s.b)
	if !ok {
		return
	}
	found, err := locator.Locate(shifted(at, size-1).Address)
	require.NoError(t, err)
	assert.Equal(t, shifted(at, size-1), found.Region)
	assert.Equal(t, at.Address, found.Base)
	assert.Equal(t, size, found.Size)
}

func (s *sharing) testRefusals(t *testing.T) {
	plain, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	require.NoError(t, plain.Truncate(int64(s.unit)))
	made, descriptor := s.create(t, s.unit)
	for _, wrong := range []int{-1, int(plain.Fd())} {
		_, err := s.able.MapShared(wrong, s.device, s.unit, true)
		assert.Error(t, err, "descriptor %d", wrong)
	}
	require.NoError(t, plain.Close())
	for _, size := range []int{-s.unit, 0, s.unit + 1, 2 * s.unit} {
		_, err := s.able.MapShared(descriptor, s.device, size, true)
		assert.Error(t, err, "%d bytes", size)
	}
	_, _, err = s.able.NewShared(s.device, s.unit+1)
	assert.ErrorContains(t, err, strconv.Itoa(s.unit+1))
	var full *backends.OutOfMemoryError
	_, _, err = s.able.NewShared(s.device, s.o.OutOfMemory)
	require.ErrorAs(t, err, &full)
	assert.Equal(t, s.o.OutOfMemory, full.Size)
	file := status(t, descriptor)
	s.end(t, made, s.unit)
	require.NoError(t, unix.Close(descriptor))
	gone(t, file)
}

// other is a process that runs the test up to here and takes part in what follows.
type other struct {
	socket  *net.UnixConn
	process *exec.Cmd
}

func connection(t *testing.T, descriptor int) *net.UnixConn {
	t.Helper()
	file := os.NewFile(uintptr(descriptor), "socket")
	defer file.Close()
	c, err := net.FileConn(file)
	require.NoError(t, err)
	return c.(*net.UnixConn)
}

func startOther(t *testing.T, device int) *other {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var parts []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	far := os.NewFile(uintptr(pair[1]), "socket")
	p := exec.Command(os.Args[0], "-test.run="+strings.Join(parts, "/"), "-test.count=1")
	// It is killed at the end, and leaves its folders.
	p.Env = append(os.Environ(), otherSetting+"="+strconv.Itoa(device), "TMPDIR="+t.TempDir())
	p.ExtraFiles = []*os.File{far}
	var output bytes.Buffer
	p.Stdout, p.Stderr = &output, &output
	require.NoError(t, p.Start())
	require.NoError(t, far.Close())
	o := &other{connection(t, pair[0]), p}
	t.Cleanup(func() {
		_ = o.socket.Close()
		_ = p.Process.Kill()
		_ = p.Wait()
		if t.Failed() {
			t.Logf("the other process: %s", output.String())
		}
	})
	return o
}

// send gives the other process a word and, if it is not negative, a descriptor.
func send(t *testing.T, c *net.UnixConn, word string, descriptor int) {
	t.Helper()
	var rights []byte
	if descriptor >= 0 {
		rights = unix.UnixRights(descriptor)
	}
	_, _, err := c.WriteMsgUnix([]byte(word), rights, nil)
	require.NoError(t, err)
}

// receive waits for a word; the descriptor is -1 if none came along.
func receive(t *testing.T, c *net.UnixConn, word string) (descriptor int) {
	t.Helper()
	got, descriptor := receiveAny(t, c)
	require.Equal(t, word, got)
	return descriptor
}

func receiveAny(t *testing.T, c *net.UnixConn) (word string, descriptor int) {
	t.Helper()
	got, rights := make([]byte, 100), make([]byte, 100)
	n, m, _, _, err := c.ReadMsgUnix(got, rights)
	require.NoError(t, err, "the other process's next word")
	if m == 0 {
		return string(got[:n]), -1
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	require.NoError(t, err)
	list, err := unix.ParseUnixRights(&messages[0])
	require.NoError(t, err)
	return string(got[:n]), list[0]
}

// testTwoProcesses shares memory with another process, whose part is beOther.
func (s *sharing) testTwoProcesses(t *testing.T) {
	o := startOther(t, s.device)
	made, descriptor := s.create(t, s.unit)
	require.NoError(t, s.b.Fill(made, []byte{1}, s.unit, 0))
	s.wait(t, 0)
	file := status(t, descriptor)
	send(t, o.socket, "ones", descriptor)
	receive(t, o.socket, "twos")
	equal(t, repeated(2, s.unit), s.read(t, made, s.unit, 0), "what the other process has written")
	require.NoError(t, s.b.Fill(made, []byte{3}, s.unit, 0))
	s.wait(t, 0)
	s.end(t, made, s.unit)
	require.NoError(t, unix.Close(descriptor))
	gone(t, file)
	s.testPools(t, o)
	send(t, o.socket, "threes", -1)
	descriptor = receive(t, o.socket, "fours")
	file = status(t, descriptor)
	require.NoError(t, o.process.Process.Kill())
	require.Error(t, o.process.Wait())
	kept := s.mapped(t, descriptor, s.unit, true)
	require.NoError(t, unix.Close(descriptor))
	equal(t, repeated(4, s.unit), s.read(t, kept, s.unit, 0), "what a process had that was killed")
	s.refuses(t, kept, s.unit)
	s.end(t, kept, s.unit)
	gone(t, file)
}

// beOther maps what it is sent twice, reads after its maker has unmapped it, and is killed while it
// has memory of its own.
func (s *sharing) beOther(t *testing.T) {
	c := connection(t, 3)
	descriptor := receive(t, c, "ones")
	writer, reader := s.mapped(t, descriptor, s.unit, false), s.mapped(t, descriptor, s.unit, true)
	require.NoError(t, unix.Close(descriptor))
	equal(t, repeated(1, s.unit), s.read(t, writer, s.unit, 0), "what the maker has written")
	s.refuses(t, reader, s.unit)
	require.NoError(t, s.b.Fill(writer, []byte{2}, s.unit, 0))
	s.wait(t, 0)
	send(t, c, "twos", -1)
	s.bePooled(t, &other{socket: c})
	receive(t, c, "threes")
	equal(t, repeated(3, s.unit), s.read(t, reader, s.unit, 0), "after its maker has unmapped it")
	own, descriptor := s.create(t, s.unit)
	require.NoError(t, s.b.Fill(own, []byte{4}, s.unit, 0))
	s.wait(t, 0)
	send(t, c, "fours", descriptor)
	receive(t, c, "the end, which does not come")
}

// runOther plays the other process's part if this is it.
func runOther(t *testing.T, b backends.Backend, o Options) bool {
	number, err := strconv.Atoi(os.Getenv(otherSetting))
	if err != nil {
		return false
	}
	s := shares(t, b, number, o)
	require.NotNil(t, s)
	s.beOther(t)
	return true
}

func testSharing(t *testing.T, b backends.Backend, count int, o Options) {
	devices := []int{backends.HostDevice}
	if count > 0 {
		devices = nil
		for device := range count {
			devices = append(devices, device)
		}
	}
	for _, device := range devices {
		if s := shares(t, b, device, o); s != nil {
			t.Run("Mapped:"+strconv.Itoa(device), s.testOneProcess)
			t.Run("Refused:"+strconv.Itoa(device), s.testRefusals)
		}
	}
}
