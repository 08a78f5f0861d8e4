package gobuffer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

// What a Go program pays for a small buffer of ordinary host memory.
func BenchmarkBuffer(b *testing.B) {
	ctx := context.Background()
	values := make([]float64, 64)
	buffer, err := gobuffer.From(backends.Malloc, values)
	require.NoError(b, err)
	defer buffer.Close()
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"New", func() error {
			made, err := gobuffer.New[float64](backends.Malloc, 64)
			if err != nil {
				return err
			}
			return made.Close()
		}},
		{"From", func() error {
			made, err := gobuffer.From(backends.Malloc, values)
			if err != nil {
				return err
			}
			return made.Close()
		}},
		{"FillValue", func() error { return buffer.FillValue(1.5) }},
		{"Get", func() error { return buffer.Get(0, values) }},
		{"Put", func() error { return buffer.Put(0, values) }},
		{"OnHost", func() error {
			return buffer.OnHost(ctx, gobuffer.ReadWrite, func(values []float64) error {
				values[0]++
				return nil
			})
		}},
		{"HostAccessible", func() error {
			h, err := buffer.HostAccessible(ctx)
			if err != nil {
				return err
			}
			return h.Release()
		}},
		{"Size", func() error {
			kinds += buffer.Size()
			return nil
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
