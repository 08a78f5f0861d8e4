package store

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// helpers are what other processes do in tests, by their first argument.
var helpers = map[string]func(arguments []string) error{
	"serve":    serveHelper,
	"cycles":   cyclesHelper,
	"work":     workHelper,
	"write":    writeHelper,
	"giveaway": giveawayHelper,
}

// TestMain is also the beginning of the processes that tests start.
func TestMain(m *testing.M) {
	if os.Getenv("HAMR_STORE_TEST_HELPER") == "" {
		os.Exit(m.Run())
	}
	if err := helpers[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, os.Args[1:], err)
		os.Exit(1)
	}
}

// serveHelper serves a path. A limit of each memory, a spill folder, bytes to keep ready and a limit of descriptors may
// follow.
func serveHelper(arguments []string) (err error) {
	o := ServerOptions{Path: arguments[0]}
	if len(arguments) > 1 {
		o.HostLimit, err = strconv.ParseInt(arguments[1], 10, 64)
		o.DeviceLimit = o.HostLimit
	}
	if len(arguments) > 2 {
		o.Spill = arguments[2]
	}
	if o.Spill != "" && err == nil {
		o.SpillDevices, err = hostAndDevice()
	}
	if len(arguments) > 3 && err == nil {
		o.Ready, err = strconv.ParseInt(arguments[3], 10, 64)
	}
	if len(arguments) > 4 && err == nil {
		var files uint64
		if files, err = strconv.ParseUint(arguments[4], 10, 64); err == nil {
			err = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files})
		}
	}
	if err != nil {
		return err
	}
	s, err := Listen(o)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return s.Serve(background)
}

func helperClient(path string) (*Client, error) {
	r, err := hostAndDevice()
	if err != nil {
		return nil, err
	}
	return Connect(background, path, r)
}

// failing is a testing.TB of a process that is no test.
type failing struct{ testing.TB }

func (failing) Helper()                        {}
func (failing) Errorf(format string, a ...any) { fmt.Fprintf(os.Stderr, format, a...) }
func (failing) FailNow()                       { os.Exit(1) }

func cyclesHelper(arguments []string) error {
	n, err := strconv.Atoi(arguments[1])
	if err != nil {
		return err
	}
	c, err := helperClient(arguments[0])
	if err != nil {
		return err
	}
	cycles(failing{}, c, n)
	return c.Close()
}
