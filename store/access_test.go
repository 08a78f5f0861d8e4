package store

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/links"
	"hamr/store/internal/wire"
)

func TestPathsThatAreRefused(t *testing.T) {
	open := folder(t)
	require.NoError(t, os.Chmod(open, 0o755))
	_, err := Listen(ServerOptions{Path: filepath.Join(open, "store.sock")})
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), "0755")
	_, err = Listen(ServerOptions{Path: filepath.Join(folder(t), "store.sock"), Spill: open})
	require.ErrorAs(t, err, &refused)

	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(open, link))
	_, err = Listen(ServerOptions{Path: filepath.Join(link, "store.sock")})
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), "0755")

	file := filepath.Join(folder(t), "store.sock")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	_, err = Listen(ServerOptions{Path: file})
	require.ErrorAs(t, err, &refused)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(text))

	var wrong *ArgumentError
	for _, path := range []string{"store.sock", "/tmp/" + strings.Repeat("x", 200)} {
		_, err = Listen(ServerOptions{Path: path})
		require.ErrorAs(t, err, &wrong)
		_, err = Connect(background, path, newRuntime(t))
		require.ErrorAs(t, err, &wrong)
	}
	_, err = Connect(background, filepath.Join(open, "nobody"), newRuntime(t))
	require.ErrorAs(t, err, new(*LostError))
}

func TestOneServerForAPath(t *testing.T) {
	s := startServer(t, ServerOptions{})
	_, err := Listen(ServerOptions{Path: s.Path()})
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), fmt.Sprint(os.Getpid()))
	makeObject(t, newClient(t, s), bytesOf(1), 1)

	for name, mode := range map[string]os.FileMode{s.Path(): 0o600, filepath.Dir(s.Path()): 0o700} {
		found, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, mode, found.Mode().Perm(), name)
	}

	stale := filepath.Join(folder(t), "made", "store.sock")
	server := startRun(t, "", "serve", stale)
	eventually(t, func() bool {
		c, err := Connect(background, stale, newRuntime(t))
		return err == nil && c.Close() == nil
	}, func() any { return stale })
	require.NoError(t, server.Process.Kill())
	server.wait(t)
	_, err = os.Stat(stale)
	require.NoError(t, err, "it left its socket behind")
	makeObject(t, newClient(t, startServer(t, ServerOptions{Path: stale})), bytesOf(1), 1)
}

// TestALinkToAFolder is as the folder, where it is the user's own.
func TestALinkToAFolder(t *testing.T) {
	links := folder(t)
	link := func(name string) string {
		path := filepath.Join(links, name)
		require.NoError(t, os.Symlink(folder(t), path))
		return path
	}
	s := startServer(t, ServerOptions{Path: filepath.Join(link("socket"), "store.sock"), HostLimit: oneUnit,
		Spill: link("spill")})
	c := newClient(t, s)
	ids := evictables(t, c, "kk")
	assert.EqualValues(t, oneUnit, s.Statistics().Spilled)
	assert.Equal(t, []bool{true, true}, thereAre(t, c, ids))
}

func TestALinkOfAnotherUserIsRefused(t *testing.T) {
	links, err := os.MkdirTemp("", "hamr-store-")
	require.NoError(t, err)
	defer os.RemoveAll(links)
	require.NoError(t, os.Chmod(links, 0o777))
	link := filepath.Join(links, "link")
	own := folder(t)
	asAnother(t, func() { assert.NoError(t, os.Symlink(own, link)) })
	_, err = Listen(ServerOptions{Path: filepath.Join(link, "store.sock")})
	require.ErrorAs(t, err, new(*RefusedError))
	assert.Contains(t, err.Error(), "65534")
}

// asAnother runs f in a thread that is another user's.
func asAnother(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends here
		const nobody = 65534
		_, _, code := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody)
		if assert.Zero(t, code) {
			f()
		}
	}()
	<-done
}

func TestAnotherUserIsRefused(t *testing.T) {
	top, err := os.MkdirTemp("", "hamr-store-")
	require.NoError(t, err)
	defer os.RemoveAll(top)
	s := startServer(t, ServerOptions{Path: filepath.Join(top, "store.sock")})
	c := newClient(t, s)
	connect := func() (err error) {
		asAnother(t, func() { _, err = Connect(background, s.Path(), c.runtime) })
		return err
	}
	require.ErrorIs(t, connect(), unix.EACCES, "by the directory")
	require.NoError(t, os.Chmod(top, 0o755))
	require.ErrorIs(t, connect(), unix.EACCES, "by the socket")
	require.NoError(t, os.Chmod(s.Path(), 0o666))
	require.ErrorAs(t, connect(), new(*RefusedError), "by the client")
	asAnother(t, func() {
		socket, err := wire.Dial(s.Path())
		if !assert.NoError(t, err) {
			return
		}
		defer socket.Close()
		_ = socket.Send(hello(t), nil)
		_, _, err = socket.Receive(make([]byte, 100))
		assert.Error(t, err, "by the server")
	})
	eventually(t, func() bool { return s.Statistics().Refused == 2 }, func() any { return s.Statistics() })
}

func TestOtherNamespacesOfProcesses(t *testing.T) {
	path := startServerProcess(t).Args[2]
	p := helper(t, "cycles", path, "20")
	p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		p.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		p.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	}
	if err := p.Start(); err != nil {
		t.Skip("no namespaces here:", err)
	}
	require.NoError(t, p.Wait())
}

// writeHelper writes to a sealed object.
func writeHelper(arguments []string) error {
	c, err := helperClient(arguments[0])
	if err != nil {
		return err
	}
	id, err := ParseID(arguments[1])
	if err != nil {
		return err
	}
	o, err := c.Get(background, id, GetOptions{})
	if err != nil {
		return err
	}
	at := o.Array().Address()
	if arguments[2] == "reopen" {
		return reopen(o)
	}
	**(**byte)(unsafe.Pointer(&at)) = 1
	return nil
}

// reopen tries every way to the memory that a process of the same user has.
func reopen(o *Object) error {
	m := o.held.mapping
	for _, flags := range []int{unix.O_RDWR, unix.O_RDONLY} {
		number, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", m.descriptor), flags|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if _, err := unix.Mmap(number, 0, int(m.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			return fmt.Errorf("mapped for writing")
		}
		if n, err := unix.Pwrite(number, []byte{1}, 0); err == nil {
			return fmt.Errorf("wrote %d bytes", n)
		}
		if err := unix.Ftruncate(number, 0); err == nil {
			return fmt.Errorf("cut")
		}
	}
	return nil
}

func TestSealedMemoryIsNotWrittenTo(t *testing.T) {
	path := startServerProcess(t).Args[2]
	c, err := Connect(background, path, newRuntime(t))
	require.NoError(t, err)
	defer c.Close()
	for _, size := range []int{100, 1 << 20} {
		id := makeObject(t, c, bytesOf(size), 4)
		require.NoError(t, helper(t, "write", path, id.String(), "reopen").Run())
		p := helper(t, "write", path, id.String(), "here")
		p.Stderr = nil
		require.Error(t, p.Run(), "the kernel ends who writes")
		o, err := c.Get(background, id, GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, byte(4), contents(t, o.Array())[0])
		require.NoError(t, o.Release())
	}
}

// TestAMakersMappingIsReadOnly seals what its maker has mapped: no writable mapping is left.
func TestAMakersMappingIsReadOnly(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	b, err := c.Create(background, bytesOf(1<<20))
	require.NoError(t, err)
	o, err := b.Seal(background)
	require.NoError(t, err)
	s.Lock.Lock()
	seals, err := unix.FcntlInt(uintptr(s.Table.Objects[o.ID()].Unit.Descriptor.Number), unix.F_GET_SEALS, 0)
	s.Lock.Unlock()
	require.NoError(t, err)
	assert.Equal(t, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW, seals)
	require.NoError(t, o.Release())
}

func TestDescriptorsAreClosedOnExec(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	b, err := c.Create(background, bytesOf(1<<20))
	require.NoError(t, err)
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range list {
		var number int
		_, err := fmt.Sscan(entry.Name(), &number)
		require.NoError(t, err)
		name, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || !strings.Contains(name, "memfd:hamr-store") && !strings.HasPrefix(name, "socket:") &&
			!strings.Contains(name, "pidfd") {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(number), unix.F_GETFD, 0)
		require.NoError(t, err)
		assert.Equal(t, unix.FD_CLOEXEC, flags&unix.FD_CLOEXEC, name)
	}
	require.NoError(t, b.Abort(background))
}

// TestAForkedChildsCopyOfASocket has the session of a process end with it, though another one has
// its socket, too.
func TestAForkedChildsCopyOfASocket(t *testing.T) {
	s := startServer(t, ServerOptions{})
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	given := os.NewFile(uintptr(pair[1]), "pair")
	p := helper(t, "giveaway", s.Path())
	p.ExtraFiles = []*os.File{given}
	require.NoError(t, p.Start())
	_ = given.Close()
	buffer, control := make([]byte, 10), make([]byte, wire.ControlBytes)
	n, copies, err := wire.ReceiveFrom(pair[0], buffer, control, 0, unix.Syscall)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Len(t, copies, 1)
	defer wire.CloseAll(append(copies, pair[0]))
	assert.EqualValues(t, 1, s.Statistics().Unsealed)
	require.NoError(t, p.Process.Kill())
	_ = p.Wait()
	if _, err := unix.GetsockoptInt(copies[0], unix.SOL_SOCKET, links.PeerPidfd); err == unix.ENOPROTOOPT {
		t.Skip("the kernel has no descriptor of a peer's process")
	}
	empty(t, s)
}

// giveawayHelper makes an object and has its parent hold its socket.
func giveawayHelper(arguments []string) error {
	c, err := helperClient(arguments[0])
	if err != nil {
		return err
	}
	if _, err = c.Create(background, bytesOf(100)); err != nil {
		return err
	}
	if err := unix.Sendmsg(3, []byte{1}, unix.UnixRights(c.line.Socket.Descriptor), nil, 0); err != nil {
		return err
	}
	select {}
}

func TestDefaultPath(t *testing.T) {
	t.Setenv("HAMR_STORE", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	assert.Equal(t, fmt.Sprintf("/tmp/hamr-%d/store.sock", os.Getuid()), DefaultPath())
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	assert.Equal(t, "/run/user/7/hamr/store.sock", DefaultPath())
	t.Setenv("HAMR_STORE", "/x/y")
	assert.Equal(t, "/x/y", DefaultPath())
	_, err := net.Dial("unix", "/x/y")
	require.Error(t, err)
}

func TestAServerThatIsNoneIsNowhere(t *testing.T) { assert.Empty(t, new(Server).Path()) }
