package hetero_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/hetero"
)

func BenchmarkRecordAndGiveEvent(b *testing.B) {
	_, s := newNull(b)
	stream, err := s.TakeStream(cuda0)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		e, err := s.Record(cuda0, stream)
		if err = errors.Join(err, s.GiveEvent(cuda0, e)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecordWaitForAndGiveEvent(b *testing.B) {
	n, s := newNull(b)
	n.prime(b, s)
	first, err := s.TakeStream(cuda0)
	require.NoError(b, err)
	second, err := s.TakeStream(cuda0)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		e, err := s.Record(cuda0, first)
		waits, waited := s.WaitFor(cuda0, second, e)
		if err = errors.Join(err, waited, s.GiveEvent(cuda0, e)); err != nil || !waits {
			b.Fatal(waits, err)
		}
	}
}

func BenchmarkTakeAndGiveStream(b *testing.B) {
	_, s := newNull(b)
	b.ReportAllocs()
	for b.Loop() {
		stream, err := s.TakeStream(cuda0)
		if err = errors.Join(err, s.GiveStream(cuda0, stream)); err != nil {
			b.Fatal(err)
		}
	}
}

// prime has an event given back, and from now on the events pending that are recorded.
func (n *null) prime(b *testing.B, s *hetero.Scheduler) {
	stream, err := s.TakeStream(cuda0)
	require.NoError(b, err)
	e, err := s.Record(cuda0, stream)
	require.NoError(b, err)
	require.NoError(b, errors.Join(s.GiveEvent(cuda0, e), s.GiveStream(cuda0, stream)))
	n.pending, n.asked = true, 0
}

func begun(b *testing.B, s *hetero.Scheduler) *hetero.Context {
	chooser, err := s.NewChooser(hetero.ChooserOptions{Among: []string{"cuda"}})
	require.NoError(b, err)
	token, err := chooser.Choose(0)
	require.NoError(b, err)
	ctx, err := s.Begin(token)
	require.NoError(b, err)
	return ctx
}

func BenchmarkWrapAndGetOnTheSameStream(b *testing.B) {
	_, s := newNull(b)
	wrapAndGet(b, begun(b, s), nil)
}

func BenchmarkWrapAndGetOnDifferentStreams(b *testing.B) {
	n, s := newNull(b)
	n.prime(b, s)
	wrapAndGet(b, begun(b, s), begun(b, s))
}

func wrapAndGet(b *testing.B, from, to *hetero.Context) {
	if to == nil {
		to = from
	}
	b.ReportAllocs()
	for b.Loop() {
		p, err := hetero.Wrap(from, 1)
		if err != nil {
			b.Fatal(err)
		}
		_, err = hetero.Get(to, p)
		if err = errors.Join(err, p.Release()); err != nil {
			b.Fatal(err)
		}
	}
}

// One module after the other on a stream: what there is to pay between two of them.
func BenchmarkBeginAndEnd(b *testing.B) {
	_, s := newNull(b)
	ctx := begun(b, s)
	p, err := hetero.Wrap(ctx, 1)
	require.NoError(b, err)
	require.NoError(b, ctx.End())
	b.ReportAllocs()
	for b.Loop() {
		next, err := s.Begin(p)
		if err = errors.Join(err, next.End()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOnThread(b *testing.B) {
	_, s := newNull(b)
	ctx := begun(b, s)
	b.ReportAllocs()
	for b.Loop() {
		if err := ctx.OnThread(func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
