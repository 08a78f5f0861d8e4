package wire

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// CrashSteps are where HAMR_STORE_CRASH_AT has a process end itself as by kill -9, so that tests
// see what others make of it: a name, or a name, a colon and how often the step is passed before.
var CrashSteps = []string{
	"server-created", "server-attached", "server-sealed", "server-got", "server-released",
	"server-deleted", "server-evicting", "server-spilled", "server-restored", "server-held",
	"server-named", "server-noted", "server-cleaning", "server-learning", "server-learned", "server-sending",
	"server-readying", "server-ready", "server-taken",
	"client-created", "client-mapped", "client-written", "client-sealing", "client-sealed",
	"client-got", "client-got-mapped", "client-releasing", "client-deleting", "client-holding",
}

var (
	crashStep string
	crashLeft atomic.Int64
)

func init() {
	step, times, _ := strings.Cut(os.Getenv("HAMR_STORE_CRASH_AT"), ":")
	if !slices.Contains(CrashSteps, step) {
		return
	}
	crashStep = step
	n, _ := strconv.ParseInt(times, 10, 64)
	crashLeft.Store(n)
}

func Crash(step string) {
	if crashStep != "" && step == crashStep && crashLeft.Add(-1) < 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
}
