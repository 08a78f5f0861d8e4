package hetero_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkRecordAndGiveEvent(b *testing.B) {
	s, p := newNull(b)
	stream, err := s.TakeStream(p)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		e, err := s.Record(p, stream)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.GiveEvent(p, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecordWaitForAndGiveEvent(b *testing.B) {
	s, p := newNull(b)
	first, err := s.TakeStream(p)
	require.NoError(b, err)
	second, err := s.TakeStream(p)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		e, err := s.Record(p, first)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.WaitFor(p, second, e); err != nil {
			b.Fatal(err)
		}
		if err := s.GiveEvent(p, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTakeAndGiveStream(b *testing.B) {
	s, p := newNull(b)
	b.ReportAllocs()
	for b.Loop() {
		stream, err := s.TakeStream(p)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.GiveStream(p, stream); err != nil {
			b.Fatal(err)
		}
	}
}
