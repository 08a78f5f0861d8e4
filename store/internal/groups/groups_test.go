package groups

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const size = 4096 // bytes of the groups here

func directory(changes ...string) string {
	text := `{"version":1,"tree":{"a":0},"types":["float32"],"arrays":[[0,0,4]]}`
	for i := 0; i < len(changes); i += 2 {
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	return text
}

func TestADirectoryThatLiesIsRefused(t *testing.T) {
	_, err := Read([]byte(directory()), size)
	require.NoError(t, err)
	for part, wrong := range map[string][]string{
		`"version":1`:  {`"version":2`, `"version":null`},
		`"version":1,`: {``},
		`"version"`:    {`"Version"`},
		`{"a":0}`: {
			`{"a":1}`, `{"a":-1}`, `{"a":1e0}`, `{"a":99999999999999999999}`, `null`, `0`, `"text"`,
			`["value",1]`, `{"a":["value",{"b":0}]}`, `{"a":["value",1,2]}`, `{"a":["value"]}`,
			`{"a":["value","1"]}`, `{"a":[]}`, `{"a":["set",0]}`, `{"a":[[],0]}`, `{"a":["float","x"]}`,
			`{"a":["float",1]}`, `{"a":[{},0]}`,
		},
		`"tree":{"a":0},`: {``},
		`["float32"]`: {
			`[]`, `["float128"]`, `[3]`, `null`, `["O"]`, `["S4"]`, `["<f16"]`, `[null]`, `{"0":"float32"}`,
		},
		`[[0,0,4]]`: {
			`null`, `[null]`, `[[]]`, `[[0]]`, `[["0",0,4]]`, `[[null,0,4]]`, `[[0,0,-1]]`, `[[-4,0,1]]`,
			`[[2,0,1]]`, `[[0,0,1025]]`, `[[4096,0]]`, `[[4100,0,0]]`, `[[4092,0,2]]`, `[[0,0,1099511627776]]`,
			`[[0,0,4611686018427387904,4611686018427387904]]`, `[[1180591620717411303424,0,1]]`,
			`[[9223372036854775804,0,1]]`, `[[0,0,0,4611686018427387904,4611686018427387904]]`,
			`[[0,1180591620717411303424,1]]`, `[[0,-1,1]]`, `[[0,0` + strings.Repeat(",1", 100) + `]]`,
			`[[0.5,0,1]]`, `{"0":[0,0,4]}`, `[[0,0,4]`, `[[true,0]]`,
		},
		`,"arrays":[[0,0,4]]`: {``},
		`{"version"`: {
			`{"metadata":3,"version"`, `{"metadata":["a"],"version"`, `{"metadata":null,"version"`,
			`{"x":NaN,"version"`,
		},
		`"a"`: {"\"\xff\"", "\"\n\""},
	} {
		for _, with := range wrong {
			text := directory(part, with)
			require.NotEqual(t, directory(), text)
			_, err := Read([]byte(text), size)
			assert.Error(t, err, text)
		}
	}
	for _, text := range []string{"", "{", strings.Repeat("[", 100_000), "\xff", "3", "[]", `{"version":1}`, "null"} {
		_, err := Read([]byte(text), size)
		assert.Error(t, err, "%.20s", text)
	}
	for levels, good := range map[int]bool{99: true, 100: false, 900: false, 100_000: false} {
		deep := directory(`"a":0`, `"a":`+strings.Repeat(`["list",`, levels)+"0"+strings.Repeat("]", levels))
		_, err := Read([]byte(deep), size)
		assert.Equal(t, good, err == nil, levels)
		deep = strings.Replace(deep, `"list",0`, `"list",["value",0]`, 1)
		_, err = Read([]byte(deep), size)
		assert.Equal(t, good, err == nil, levels)
	}
	_, err = Read([]byte(directory(`{"a":0}`, ` [ "t\u0075ple" , 0,["v\u0061lue" , 1 ] ] `)), size)
	assert.NoError(t, err)
}

// Texts are those of encoding/json, both ways.
func TestTexts(t *testing.T) {
	choose := rand.New(rand.NewPCG(rand.Uint64(), 0))
	pieces := []string{"a", `"`, `\`, "/", "\n", "\x00", "\x1f", "\x7f", "ä", "\u2028", "😀", "\ufffd", "<", "\b\f\r\t"}
	raw := []string{
		`\u0041`, `\/`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83d\u0041`, `\b\f\n\r\t\"\\`, "ä", `\uD800`, `\udfff`,
	}
	for range 2000 {
		text, escaped := "", ""
		for range choose.IntN(6) {
			text += pieces[choose.IntN(len(pieces))]
			escaped += raw[choose.IntN(len(raw))]
		}
		var back, wanted string
		require.NoError(t, json.Unmarshal(quote(nil, text), &back))
		require.Equal(t, text, back)
		written, err := json.Marshal(text)
		require.NoError(t, err)
		c, err := cursorOf(written)
		require.NoError(t, err)
		require.Equal(t, text, unquote(c.quoted()))
		require.NoError(t, json.Unmarshal([]byte(`"`+escaped+`"`), &wanted))
		require.Equal(t, wanted, unquote(escaped), "%s", escaped)
	}
}

func TestPathsForWhichThereIsNoMemoryAreRefused(t *testing.T) {
	tree := fmt.Sprintf(`{"%s":["list"%s]}`, strings.Repeat("k", 1<<20), strings.Repeat(",0", 300))
	d, err := Read([]byte(directory(`{"a":0}`, tree)), size)
	require.NoError(t, err)
	for _, only := range []*Wanted{nil, NewWanted([]string{"k"})} {
		_, err = d.Leaves(only)
		assert.ErrorContains(t, err, "its paths have more than")
	}
}

func TestFactsThatAreNoGroups(t *testing.T) {
	good := `{"hamr.group":{"version":1,"arrays":2,"at":256,"bytes":70},"metadata":[1]}`
	f, users, err := ReadFacts([]byte(good))
	require.NoError(t, err)
	assert.Equal(t, Facts{1, 2, 256, 70}, f)
	assert.Equal(t, "[1]", string(users))
	assert.Equal(t, good, string(f.Metadata(users)))
	but := func(part, with string) string { return strings.Replace(good, part, with, 1) }
	for _, bad := range []string{
		"", "[]", "{}", `{"hamr.group":3}`, `{"hamr.group":{}}`, but("metadata", "other"), but("256", "2.5"),
		but("256", `"256"`), but("at", "At"), but(`"at":256,`, ""), but(`"at"`, `"x":1,"at"`),
		but("256", "99999999999999999999"), but(`{"hamr`, `{"x":1,"hamr`),
	} {
		_, _, err := ReadFacts([]byte(bad))
		assert.ErrorIs(t, err, ErrNoGroup, bad)
	}
	_, _, err = ReadFacts([]byte(but(`"version":1`, `"version":2`)))
	assert.ErrorContains(t, err, "its version is 2")
}

const rich = `{"version":1,"types":["float32","int8"],"arrays":[[0,0,4],[256,1,2,3],[256,0],[512,1,0,3]],
	"metadata":{"l.1":[3]},"tree":{"a.b":{"c":0,"d":"text"},"n":null,"e":{"ä\n":3},
	"l":["list",true,2,["tuple",0,["value",3e2],["float","-inf"]]]}}`

// What is read of a directory that was changed in any way lies within the group.
func TestDirectoriesThatWereChangedAtRandom(t *testing.T) {
	seed := rand.Uint64()
	choose := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed ", seed)
	rounds := 5000
	if scale, err := strconv.ParseFloat(os.Getenv("HAMR_TEST_SCALE"), 64); err == nil {
		rounds = max(1, int(float64(rounds)*scale))
	}
	read := 0
	for range rounds {
		text := []byte(rich)
		for range 1 + choose.IntN(4) {
			change(choose, &text)
		}
		read += check(t, text)
	}
	assert.Positive(t, read)
}

var numbers = []string{
	"-1", "4095", "4096", "65", "9223372036854775807", "4611686018427387904", "18446744073709551616", "1e3",
}

// change makes one change: a byte, a number, a part that goes, or one that is there twice.
func change(choose *rand.Rand, text *[]byte) {
	at := choose.IntN(len(*text))
	end := min(len(*text), at+1+choose.IntN(12))
	switch choose.IntN(4) {
	case 0:
		(*text)[at] = `0123456789-[]{},:"\ntruefalsd`[choose.IntN(28)]
	case 1:
		for i := at; i < len(*text); i++ {
			if b := (*text)[i]; '0' <= b && b <= '9' {
				number := numbers[choose.IntN(len(numbers))]
				*text = slices.Concat((*text)[:i], []byte(number), (*text)[i+1:])
				break
			}
		}
	case 2:
		*text = append((*text)[:at:at], (*text)[end:]...)
	default:
		*text = append((*text)[:end:end], (*text)[at:]...)
	}
	if len(*text) == 0 {
		*text = []byte("{}")
	}
}

func check(t *testing.T, text []byte) int {
	t.Helper()
	d, err := Read(text, size)
	if err != nil {
		return 0
	}
	for _, row := range d.Rows {
		require.True(t, row.Offset >= 0 && row.Layout.NBytes() <= size-row.Offset, "%s", text)
	}
	leaves, err := d.Leaves(nil)
	require.NoError(t, err)
	var paths []string
	var others []Leaf
	for _, leaf := range leaves {
		if leaf.Array >= 0 {
			paths = append(paths, leaf.Path)
		} else {
			others = append(others, leaf)
		}
	}
	slices.Sort(paths)
	require.Equal(t, pathsIn(t, text), paths, "%s", text)
	require.True(t, json.Valid(Values(others)))
	for _, leaf := range leaves {
		require.Less(t, leaf.Array, len(d.Rows))
		found := d.Tree.Find(leaf.Path)
		require.NotNil(t, found, "%q of %s", leaf.Path, text)
	}
	return 1
}

// pathsIn are those of the arrays of a directory, as encoding/json reads it.
func pathsIn(t *testing.T, text []byte) (paths []string) {
	t.Helper()
	var whole map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &whole))
	d := json.NewDecoder(bytes.NewReader(whole["tree"]))
	d.UseNumber()
	var tree any
	require.NoError(t, d.Decode(&tree))
	var walk func(node any, path, dot string)
	walk = func(node any, path, dot string) {
		switch is := node.(type) {
		case json.Number:
			paths = append(paths, path)
		case map[string]any:
			for key, each := range is {
				walk(each, path+dot+key, ".")
			}
		case []any:
			for i, each := range is[1:] {
				if is[0] == "list" || is[0] == "tuple" {
					walk(each, path+dot+strconv.Itoa(i), ".")
				}
			}
		}
	}
	walk(tree, "", "")
	slices.Sort(paths)
	return paths
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(rich))
	f.Fuzz(func(t *testing.T, text []byte) { check(t, text) })
}
