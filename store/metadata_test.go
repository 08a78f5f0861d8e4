package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/store/internal/protocol"
)

func nested(levels int) string {
	return strings.Repeat(`{"a":[`, levels/2) + strings.Repeat("]}", levels/2)
}

func TestMetadataThatAllClientsCanRead(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	for _, good := range []string{
		"", "null", `"ä😀"`, `"\ud83d\ude00\uD83D\uDE00"`, `"\\ud800 is no escape"`, `"\"\\"`, `"\u00e4\n"`,
		nested(protocol.MostNested),
		`"` + strings.Repeat("[", 990) + `"`, "[" + strings.Repeat("[],", 5000) + "[]]",
		strings.Repeat("9", protocol.MostDigits), "-1.5e+300",
		`"` + strings.Repeat("9", 5000) + `"`,
	} {
		what := bytesOf(1)
		what.Metadata = []byte(good)
		b, err := c.Create(background, what)
		require.NoError(t, err, good)
		require.NoError(t, b.Abort(background))
	}
}

func TestMetadataThatSomeClientCouldNotRead(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	for bad, accepted := range map[string]string{
		"\"\xff\"":                                       "UTF-8",
		"\"\xed\xa0\x80\"":                               "UTF-8",
		nested(protocol.MostNested + 2):                  "100 levels",
		"[" + strings.Repeat("9", 5000) + "]":            "640 digits",
		"-1." + strings.Repeat("9", protocol.MostDigits): "640 digits",
		`{"a\ud800": 1}`:                                 "surrogate",
		`"\udc00\ud800"`:                                 "surrogate",
		`"\ud83d\u0041"`:                                 "surrogate",
		`"\ud83d\n"`:                                     "surrogate",
		`"\ud83d"`:                                       "surrogate",
		"{":                                              "JSON",
		"NaN":                                            "JSON",
	} {
		what := bytesOf(1)
		what.Metadata = []byte(bad)
		_, err := c.Create(background, what)
		var argument *ArgumentError
		require.ErrorAs(t, err, &argument, bad)
		assert.Contains(t, argument.Accepted, accepted)
		b, err := c.Create(background, bytesOf(1))
		require.NoError(t, err)
		require.ErrorAs(t, c.SetMetadata(background, b.ID(), []byte(bad)), &argument, bad)
		require.NoError(t, b.Abort(background))
	}
}

func TestTooMuchMetadata(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	b, err := c.Create(background, bytesOf(1))
	require.NoError(t, err)
	for _, size := range []int{protocol.MostMetadata + 1, protocol.LargestMetadata + 1, protocol.MostPacket, 5 << 20} {
		what := bytesOf(1)
		what.Metadata = []byte(`"` + strings.Repeat("a", size-2) + `"`)
		_, err := c.Create(background, what)
		for _, err := range []error{err, c.SetMetadata(background, b.ID(), what.Metadata)} {
			var argument *ArgumentError
			require.ErrorAs(t, err, &argument)
			assert.Equal(t, "metadata", argument.Argument)
			assert.Equal(t, fmt.Sprintf("%d bytes", size), argument.Value)
			assert.Contains(t, argument.Accepted, "at most 32768")
		}
	}
}
