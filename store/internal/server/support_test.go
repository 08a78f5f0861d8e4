package server

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// conversationOf is a connection whose replies nobody reads.
func conversationOf(s *Server) *conversation {
	return &conversation{server: s, transport: silent{}, hang: func() {}}
}

// eventually asks until something holds, as what a server is told without an answer is done soon.
func eventually(t testing.TB, what func() bool, describe func() any) {
	t.Helper()
	for range 2000 {
		if what() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	require.Fail(t, "it did not come to be", "%+v", describe())
}

// empty waits until no lease is left and no byte counted beside those that are ready.
func empty(t testing.TB, s *Server) {
	t.Helper()
	eventually(t, func() bool {
		f := s.Statistics()
		ok := f.Objects == 0 && f.Leases == 0 && f.Table == 0
		for _, m := range f.Memories {
			ok = ok && m.Used == m.Ready && m.Lingering == 0
		}
		s.lock.Lock()
		defer s.lock.Unlock()
		ok = ok && s.table.Memory.Units == 0
		return ok
	}, func() any { return s.Statistics() })
}

func scaled(n int) int {
	if scale, err := strconv.ParseFloat(os.Getenv("HAMR_TEST_SCALE"), 64); err == nil {
		n = max(1, int(float64(n)*scale))
	}
	return n
}
