package server

import (
	"slices"
	"strings"

	"hamr/backends"
	"hamr/store/internal/protocol"
)

// Statistics returns the server's figures.
func (s *Server) Statistics() protocol.Statistics {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.figures()
}

func (s *Server) figures() protocol.Statistics {
	t := protocol.Statistics{
		Objects: int64(len(s.Objects)), Names: s.namesThere, Leases: s.leases, Sessions: int64(len(s.Sessions)),
		Table: s.table, TableLimit: s.Options.TableLimit, Evicted: s.evicted, Spilled: s.SpilledBytes, Spills: s.spills,
		Restored: s.restored, Requests: s.requests, Refused: s.refused, Breaches: s.breaches,
		ReadyHits: s.spares.hits, ReadyMisses: s.spares.misses,
	}
	for c := range s.Sessions {
		t.Unsealed += int64(len(c.unsealed))
	}
	s.DomainOf(backends.UUID{})
	for _, d := range s.domains {
		t.Memories = append(t.Memories, protocol.MemoryStatistics{Name: d.name, Device: d.device, Limit: d.limit, Used: d.used, Peak: d.peak, Lingering: d.lingering, Ready: s.readyIn(d)})
	}
	slices.SortFunc(t.Memories, func(a, b protocol.MemoryStatistics) int {
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
