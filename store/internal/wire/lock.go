package wire

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
)

// PathLock has this process be the only server of a path. It ends with its process; the file stays.
type PathLock struct{ Descriptor int }

// LockPath takes the lock of a path that nobody serves, or where this process's socket listens already.
func LockPath(path string, listening bool) (*PathLock, error) {
	name := path + ".lock"
	for {
		descriptor, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		if err := unix.Flock(descriptor, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			owner := make([]byte, 20)
			n, _ := unix.Pread(descriptor, owner, 0)
			_ = unix.Close(descriptor)
			if err == unix.EWOULDBLOCK {
				return nil, servedBy(path, strings.TrimSpace(string(owner[:max(n, 0)])))
			}
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		Record(descriptor)
		lock := &PathLock{descriptor}
		if !IsFile(name, identityOf(descriptor)) { // it was removed meanwhile
			_ = lock.Release()
			continue
		}
		if !listening {
			if process, serves := listensAt(path); serves {
				_ = lock.Release()
				return nil, servedBy(path, strconv.Itoa(process))
			}
		}
		_ = unix.Ftruncate(descriptor, 0)
		_, _ = unix.Pwrite(descriptor, []byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		return lock, nil
	}
}

// Release ends the lock, also where another process has a copy of the descriptor.
func (l *PathLock) Release() error {
	_ = unix.Flock(l.Descriptor, unix.LOCK_UN)
	return os.NewSyscallError("close", CloseRecorded(l.Descriptor))
}

func servedBy(path, process string) error {
	return &protocol.RefusedError{Path: path, Reason: fmt.Sprintf("a store serves it already, process %s", process)}
}

// listensAt reports whether a process listens at a path, and which: a server's lock says nothing where its file was
// removed, as programs do that clean /tmp. One that has ended does not, though others have its socket.
func listensAt(path string) (process int, listens bool) {
	descriptor, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(descriptor)
	switch err := unix.Connect(descriptor, &unix.SockaddrUnix{Name: path}); {
	case err == unix.EAGAIN: // so many wait that there is no room for one more
		return 0, true
	case err != nil:
		return 0, false
	}
	if peer, err := unix.GetsockoptUcred(descriptor, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
		process = int(peer.Pid) // 0 where it is in another namespace
	}
	return process, process == 0 || unix.Kill(process, 0) != unix.ESRCH
}

// FileIdentity is one file as long as something has it.
type FileIdentity struct{ device, inode uint64 }

func identityOf(descriptor int) (id FileIdentity) {
	var found unix.Stat_t
	if unix.Fstat(descriptor, &found) == nil {
		id = FileIdentity{uint64(found.Dev), found.Ino}
	}
	return id
}

// FileAt is which file a path names, a link itself.
func FileAt(path string) (id FileIdentity) {
	var found unix.Stat_t
	if unix.Lstat(path, &found) == nil {
		id = FileIdentity{uint64(found.Dev), found.Ino}
	}
	return id
}

// IsFile reports whether a path names a file.
//
//mutate:replace a server removes another one's socket
//mutate:with FileAt(path) == id => true
func IsFile(path string, id FileIdentity) bool { return id != FileIdentity{} && FileAt(path) == id }

// RemoveStale removes what a server that has ended left behind. The lock is held.
func RemoveStale(path string) error {
	var found unix.Stat_t
	switch err := unix.Lstat(path, &found); {
	case err == unix.ENOENT:
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case found.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return &protocol.RefusedError{Path: path, Reason: "it is there, and is no socket"}
	}
	if err := os.Remove(path); !errors.Is(err, syscall.ENOENT) {
		return err
	}
	return nil
}
