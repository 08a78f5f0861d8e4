package gobuffer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// TestAPointerBehindMemoryIsNoUseOfTheNext has kernels that were given where memory begins and where it ends, which is
// where memory begins that was freed.
func TestAPointerBehindMemoryIsNoUseOfTheNext(t *testing.T) {
	for _, with := range []struct {
		others []backends.Touch
		wrong  int
	}{
		{nil, 1},
		{[]backends.Touch{{Address: 1000, Size: 1}}, 0},
		{[]backends.Touch{{Address: 1511, Size: 1}}, 0},
		{[]backends.Touch{{Address: 999, Size: 1}}, 1},
		{[]backends.Touch{{Address: 1000, Size: 512, Writes: backends.OnlyReads}}, 0},
		{[]backends.Touch{{Address: 1000, Size: 1}, {Address: 5, Size: 1}}, 0},
	} {
		c := &Checker{}
		w := newWitness(c)
		for i := range 2 {
			m := &Memory{owned: true, region: backends.Region{Address: backends.Address(1000 + 512*i)}}
			m.size.Store(512)
			w.add(m)
			if i == 1 {
				w.freed(m, &keptMemory{memory: m, size: 512})
			}
		}
		for _, end := range []backends.Touch{{Address: 1512, Size: 1}, {Address: 1513, Size: 1},
			{Address: 1512, Size: 1, Writes: backends.DoesWrite}} {
			_, then := w.Enqueue(backends.Work{Queue: 1, Name: "kernel", Touches: append(with.others, end)})
			if then != nil {
				then()
			}
			found := c.found
			c.found, w.told = nil, map[tellOnce]bool{}
			if end.Address != 1512 || end.Writes != backends.MayWrite {
				require.Len(t, found, 1, "%v %v", with.others, end)
			} else {
				require.Len(t, found, with.wrong, "%v %v", with.others, end)
			}
		}
	}
}
