package store

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// run is a process that a test waits for.
type run struct {
	*exec.Cmd
	done chan error
}

func startRun(t *testing.T, crashAt string, arguments ...string) *run {
	t.Helper()
	p := helper(t, arguments...)
	if crashAt != "" {
		p.Env = append(p.Env, "HAMR_STORE_CRASH_AT="+crashAt)
	}
	require.NoError(t, p.Start())
	r := &run{p, make(chan error, 1)}
	go func() { r.done <- p.Wait() }()
	t.Cleanup(func() { _ = p.Process.Kill() })
	return r
}

// wait returns how the process has ended; one that hangs is a failure.
func (r *run) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(90 * time.Second):
		_ = r.Process.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		require.Fail(t, "a process hangs", r.Args)
		return nil
	}
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}
