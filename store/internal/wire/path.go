package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
)

// DefaultPath is where a server listens, and clients look for it, unless they are told otherwise:
// $HAMR_STORE, else hamr/store.sock in $XDG_RUNTIME_DIR, else store.sock in /tmp/hamr-UID.
func DefaultPath() string { return DefaultPathBy(os.Getenv) }

// DefaultPathBy is DefaultPath by other values of the environment's variables than those that the process started with.
func DefaultPathBy(lookup func(name string) string) string {
	if path := lookup("HAMR_STORE"); path != "" {
		return path
	}
	if folder := lookup("XDG_RUNTIME_DIR"); folder != "" {
		return filepath.Join(folder, "hamr", "store.sock")
	}
	return filepath.Join("/tmp", "hamr-"+strconv.Itoa(os.Getuid()), "store.sock")
}

const mostPath = 107 // bytes of a socket's name, see unix(7)

func CheckPath(path string) error {
	switch {
	case strings.ContainsRune(path, 0) || path == "" || !filepath.IsAbs(path):
		return &protocol.ArgumentError{Argument: "path", Value: fmt.Sprintf("%q", path), Accepted: "an absolute path"}
	case len(path) > mostPath:
		value := fmt.Sprintf("%q, of %d bytes", path, len(path))
		return &protocol.ArgumentError{Argument: "path", Value: value,
			Accepted: fmt.Sprintf("a path of at most %d", mostPath)}
	}
	return nil
}

// CheckFolder refuses a folder where another user could put a socket, or find this one. It may be a link, but none that
// another user could have lead elsewhere.
func CheckFolder(folder string) error {
	refused := func(reason string, values ...any) error {
		return &protocol.RefusedError{Path: folder, Reason: fmt.Sprintf(reason, values...)}
	}
	const others = "it is user %d's: accepted is a directory of user %d's own"
	var link, found unix.Stat_t
	if err := unix.Lstat(folder, &link); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	if err := unix.Stat(folder, &found); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	switch {
	//mutate:never a link may be another user's
	case int(link.Uid) != os.Geteuid() && link.Uid != 0:
		return refused(others, link.Uid, os.Geteuid())
	case found.Mode&unix.S_IFMT != unix.S_IFDIR:
		return refused("it is no directory")
	case int(found.Uid) != os.Geteuid():
		return refused(others, found.Uid, os.Geteuid())
	case found.Mode&0o077 != 0:
		return refused("its mode is %04o: accepted is a directory that nobody else can enter, as 0700", found.Mode&0o7777)
	}
	return nil
}

// BootID tells machines, and their starts, from each other.
func BootID() (string, error) {
	if known := Boot.Load(); known != nil {
		return *known, nil
	}
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if RanOut(err) {
		return "", NoDescriptors()
	}
	known := strings.TrimSpace(string(text))
	Boot.Store(&known)
	return known, nil
}

var Boot atomic.Pointer[string]

// CheckPeer refuses the other end of a connection if it is another user's, and returns its process:
// 0 of one that this process cannot see, in another PID namespace.
func CheckPeer(descriptor int, path string) (process int, err error) {
	peer, err := unix.GetsockoptUcred(descriptor, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, fmt.Errorf("%s: who is at the other end: %w", path, err)
	}
	//mutate:never who is at the other end is not looked at
	if int(peer.Uid) != os.Geteuid() {
		reason := fmt.Sprintf("the other end is user %d's: accepted is user %d alone", peer.Uid, os.Geteuid())
		return 0, &protocol.RefusedError{Path: path, Reason: reason}
	}
	return int(peer.Pid), nil
}
