package main

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFilesAreOfTheTables(t *testing.T) {
	want, err := files(os.DirFS("../.."))
	require.NoError(t, err)
	for name, text := range want {
		got, err := os.ReadFile("../../" + name)
		require.NoError(t, err)
		require.Equal(t, text, string(got), "%s: run go generate ./pyhamr/internal/cabi", name)
	}
}

func TestATableIsRead(t *testing.T) {
	tree := fstest.MapFS{"a.h": {Data: []byte(`typedef struct a_table {
    uint32_t version;
    /* First. */

    /* Says
     * much. */
    const char *(*words)(void);
    hamr_status (*set)(a  *one, const char *const *names, int64_t
                       n); /* behind */
    const struct a *other;
} a_table;
`)}}
	found, err := readTable(tree, "a.h", "a_table")
	require.NoError(t, err)
	assert.Equal(t, table{name: "a_table", fields: []string{"version", "other"}, entries: []function{
		{name: "words", comment: "/* Says\n     * much. */", result: "const char *"},
		{name: "set", result: "hamr_status", parameters: []parameter{{"one", "a *"}, {"names", "const char *const *"},
			{"n", "int64_t"}}},
	}}, found)
	_, err = readTable(tree, "a.h", "b_table")
	assert.ErrorContains(t, err, "there is no struct b_table")
}
