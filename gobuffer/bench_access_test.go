package gobuffer_test

import (
	"testing"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// What every buffer of ordinary host memory pays.
func BenchmarkOnTheHost(b *testing.B) {
	w := newWorld(b, 1, backendtest.FakeOptions{})
	o := place{backends.Malloc, backends.HostDevice}.options(gobuffer.SyncHost)
	a, other := w.array(o, counting(arrayiface.Int32, 16)), w.array(o, counting(arrayiface.Int32, 16))
	one := w.scalar(arrayiface.Int32, 7)
	defer closeAll(b, a, other, one)
	region := a.Memory().Region()
	for name, run := range map[string]func() error{
		"Access": func() error {
			h, err := a.Access(backends.SpaceHost, backends.HostDevice)
			if err != nil {
				return err
			}
			return h.Release()
		},
		"Adopt": func() error {
			m, err := w.runtime.Adopt(region, 64, 0, nil)
			if err != nil {
				return err
			}
			return m.Release()
		},
		"Allocate": func() error {
			m, err := w.runtime.Allocate(backends.Malloc, backends.HostDevice, 64, 0, false)
			if err != nil {
				return err
			}
			return m.Release()
		},
		"Assign": func() error { return a.Assign(other) },
		"Fill":   func() error { return a.Fill(one) },
		"Kind": func() error {
			kinds += int(o.Allocator.Kind())
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var kinds int
