package gobuffer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// What is not printed is not read either.
func TestShortenedTextReadsOnlyWhatItShows(t *testing.T) {
	for _, p := range places(1) {
		for _, how := range arrangements {
			w := newWorld(t, 1, late)
			a := w.lay(p, p.options(gobuffer.Async), counting(arrayiface.Int32, 9, 11), how)
			copies := len(w.cuda.Calls()) + len(w.hip.Calls())
			text, err := a.Text(10)
			require.NoError(t, err)
			assert.Equal(t, "{1, 2, 3, ..., 97, 98, 99}", text, "%s %s", p, how.name)
			bytes := 0
			for _, call := range append(w.cuda.Calls(), w.hip.Calls()...) {
				if name, rest, _ := strings.Cut(call, "("); name == "Copy" {
					var size int
					_, after, _ := strings.Cut(rest, ", ")
					_, err := fmt.Sscanf(after, "%d bytes", &size)
					require.NoError(t, err)
					bytes += size
				}
			}
			if p.allocator.Kind() == backends.DeviceOnly {
				assert.Equal(t, 24, bytes, "%s %s", p, how.name)
				assert.Greater(t, len(w.cuda.Calls())+len(w.hip.Calls()), copies)
			}
			closeAll(t, a)
		}
	}
	for size, want := range map[int]string{6: "{1, 2, 3, 4, 5, 6}", 7: "{1, 2, 3, ..., 5, 6, 7}"} {
		w := newWorld(t, 1, late)
		a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Int8, size))
		text, err := a.Text(2)
		require.NoError(t, err)
		assert.Equal(t, want, text)
		closeAll(t, a)
	}
}
