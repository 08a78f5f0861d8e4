package shares

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const openerOfShares = "HAMR_TEST_OPENER_OF_SHARES"

// What an opener of shares is told: a byte, a name of one byte, and behind "open" a frame, with its descriptors.
const (
	tellOpen  = 'o'
	tellClose = 'c'
	tellLose  = 'l' // close the descriptors of all, as the kernel does before it is done with a process
	tellNoted = 'n' // how many of those are in a lane?
	tellMake  = 'm' // make a pair of sockets, and send one end
)

// openShares is such a process: it does what comes by descriptor 3.
func openShares() error {
	here := &party{backend: newOpening()}
	open := map[byte]*Attachment{}
	message, room := make([]byte, 4200), make([]byte, 64)
	for {
		n, size, _, _, err := unix.Recvmsg(3, message, room, unix.MSG_CMSG_CLOEXEC)
		if err != nil || n == 0 {
			return err
		}
		answer := byte(0)
		switch message[0] {
		case tellOpen:
			messages, err := unix.ParseSocketControlMessage(room[:size])
			if err != nil {
				return err
			}
			descriptors, err := unix.ParseUnixRights(&messages[0])
			if err != nil {
				return err
			}
			if open[message[1]], err = here.opens(message[2:n], descriptors); err != nil {
				return err
			}
			for _, each := range descriptors {
				err = errors.Join(err, unix.Close(each))
			}
			if err != nil {
				return err
			}
		case tellClose:
			if err := open[message[1]].End(); err != nil {
				return err
			}
			delete(open, message[1])
		case tellLose:
			for name, each := range open {
				if err := unix.Close(each.Lease - 1); err != nil {
					return err
				}
				delete(open, name) // it is never closed
			}
		case tellNoted:
			answer = byte(notedShares())
		case tellMake:
			ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(ends[1]), nil, 0); err != nil {
				return err
			}
			continue
		}
		if _, err := unix.Write(3, []byte{answer}); err != nil {
			return err
		}
	}
}

// opener is a process of openShares.
type opener struct {
	t       *testing.T
	process *os.Process
	socket  int
}

func newOpener(t *testing.T) *opener {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	theirs := os.NewFile(uintptr(ends[1]), "opener")
	defer theirs.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	program, err := os.Executable()
	require.NoError(t, err)
	process, err := os.StartProcess(program, []string{program}, &os.ProcAttr{
		Env: append(os.Environ(), openerOfShares+"=1"), Files: []*os.File{null, os.Stderr, os.Stderr, theirs}})
	require.NoError(t, err)
	return &opener{t, process, ends[0]}
}

func (o *opener) tell(word, name byte, frame []byte, descriptors ...int) byte {
	o.t.Helper()
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	require.NoError(o.t, unix.Sendmsg(o.socket, append([]byte{word, name}, frame...), rights, nil, 0))
	var answer [1]byte
	n, err := unix.Read(o.socket, answer[:])
	require.NoError(o.t, err)
	require.Equal(o.t, 1, n, fmt.Sprintf("the process has ended at %c", word))
	return answer[0]
}

// makes returns a socket that the process has the other end of.
func (o *opener) makes() int {
	o.t.Helper()
	require.NoError(o.t, unix.Sendto(o.socket, []byte{tellMake, 0}, 0, nil))
	room := make([]byte, 64)
	_, size, _, _, err := unix.Recvmsg(o.socket, make([]byte, 1), room, unix.MSG_CMSG_CLOEXEC)
	require.NoError(o.t, err)
	messages, err := unix.ParseSocketControlMessage(room[:size])
	require.NoError(o.t, err)
	descriptors, err := unix.ParseUnixRights(&messages[0])
	require.NoError(o.t, err)
	return descriptors[0]
}

func (o *opener) open(name byte, shared *sent) {
	o.t.Helper()
	o.tell(tellOpen, name, shared.Frame(), shared.Descriptors()...)
}

func (o *opener) kill() {
	o.t.Helper()
	require.NoError(o.t, o.process.Kill())
	_, err := o.process.Wait()
	require.NoError(o.t, errors.Join(err, unix.Close(o.socket)))
}
