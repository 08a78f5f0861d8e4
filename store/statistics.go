package store

import (
	"slices"
	"strings"

	"hamr/backends"
)

// Statistics returns the server's figures.
func (s *Server) Statistics() Statistics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.figures()
}

func (s *Server) figures() Statistics {
	t := Statistics{
		Objects: int64(len(s.objects)), Names: s.namesThere, Leases: s.leases, Sessions: int64(len(s.sessions)),
		Table: s.table, TableLimit: s.options.TableLimit, Evicted: s.evicted, Spilled: s.spilledBytes, Spills: s.spills,
		Restored: s.restored, Requests: s.requests, Refused: s.refused, Breaches: s.breaches,
		ReadyHits: s.spares.hits, ReadyMisses: s.spares.misses,
	}
	for c := range s.sessions {
		t.Unsealed += int64(len(c.unsealed))
	}
	s.domainOf(backends.UUID{})
	for _, d := range s.domains {
		t.Memories = append(t.Memories, MemoryStatistics{Name: d.name, Device: d.device, Limit: d.limit, Used: d.used, Peak: d.peak, Lingering: d.lingering, Ready: s.readyIn(d)})
	}
	slices.SortFunc(t.Memories, func(a, b MemoryStatistics) int {
		if (a.Name == "host") != (b.Name == "host") {
			if a.Name == "host" {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return t
}
