package bridge

import (
	"os"
	"sync"
)

// Settings are the values of HAMR_… variables, and of others' that hamr reads: what Python or C said,
// else the environment of the process when it started.
var Settings settings

type settings struct {
	mutex sync.Mutex
	known map[string]string
}

// Set makes value what name is taken for.
func (s *settings) Set(name, value string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known == nil {
		s.known = map[string]string{}
	}
	s.known[name] = value
}

// Get returns what name is taken for.
func (s *settings) Get(name string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if value, ok := s.known[name]; ok {
		return value
	}
	return os.Getenv(name)
}

// Said reports whether anything was set.
func (s *settings) Said() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.known) > 0
}
