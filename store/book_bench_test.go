package store

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hamr/store/internal/protocol"
)

// longestHold returns for how long somebody had to wait for the server's lock while f ran, at most.
func longestHold(s *served, f func()) (longest time.Duration) {
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !ended.Load() {
			began := time.Now()
			s.Lock.Lock()
			took := time.Since(began)
			s.Lock.Unlock()
			longest = max(longest, took)
			time.Sleep(100 * time.Microsecond)
		}
	}()
	f()
	ended.Store(true)
	<-done
	return longest
}

// giveNames has objects have many names, each of which is given many times.
func giveNames(s *served, objects []*Object, names, times int) {
	for i := range names * times {
		var e protocol.Encoder
		name := fmt.Sprint("a name of usual length ", i%names)
		id := objects[i/names%len(objects)].ID()
		if len(objects) > times {
			id = objects[i%len(objects)].ID()
		}
		e.Text(name)
		e.ID(id)
		e.Flag(true)
		s.Lock.Lock()
		if had, taken := s.Table.Names[name]; taken {
			s.Table.Unname(had)
		}
		s.Table.Name(s.Table.Objects[id], name)
		s.Table.Note(protocol.OpPutName, e.Bytes)
		s.Lock.Unlock()
	}
}

// BenchmarkLongestHold is for how long all clients have to wait, at most, beside a book of many facts.
func BenchmarkLongestHold(b *testing.B) {
	report := func(b *testing.B, longest, whole time.Duration) {
		b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest")
		b.ReportMetric(whole.Seconds(), "s-whole")
	}
	for _, of := range []struct {
		name           string
		objects, names int
	}{
		{"another-server-learns-2000000", 2000, 2_000_000},
		{"another-server-learns-of-one-object", 1, 1_000_000},
	} {
		b.Run(of.name, func(b *testing.B) {
			s, c, objects := namedObjects(b, of.objects)
			giveNames(s, objects, of.names, 1)
			require.NoError(b, s.Close())
			again := startServer(b, ServerOptions{Path: s.Path()})
			began := time.Now()
			longest := longestHold(again, func() {
				for done := false; !done; {
					_, err := c.Statistics(background)
					done = err == nil
				}
			})
			report(b, longest, time.Since(began))
			require.EqualValues(b, of.names, again.Statistics().Names)
		})
	}
	b.Run("names-are-replaced", func(b *testing.B) {
		s, _, objects := namedObjects(b, 2)
		giveNames(s, objects, 1_000_000, 1)
		began := time.Now()
		longest := longestHold(s, func() { giveNames(s, objects, 1_000_000, 3) })
		report(b, longest, time.Since(began)/3_000_000*1_000_000)
	})
	b.Run("delete-1000000-names", func(b *testing.B) {
		s, c, objects := namedObjects(b, 1)
		giveNames(s, objects, 1_000_000, 1)
		began := time.Now()
		var whole time.Duration
		longest := longestHold(s, func() {
			require.NoError(b, c.Delete(background, objects[0].ID(), false))
			whole = time.Since(began)
			time.Sleep(time.Second) // what is done afterwards
		})
		report(b, longest, whole)
	})
}

// namedObjects has a client keep leases of some objects.
func namedObjects(b *testing.B, n int) (s *served, c *Client, objects []*Object) {
	s = startServer(b, ServerOptions{TableLimit: 1 << 30})
	c = newClient(b, s)
	for range n {
		builder, err := c.Create(background, bytesOf(100))
		require.NoError(b, err)
		o, err := builder.Seal(background)
		require.NoError(b, err)
		objects = append(objects, o)
	}
	return s, c, objects
}
