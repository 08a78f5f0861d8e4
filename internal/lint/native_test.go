package lint

import (
	"maps"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThereAreNativeFilesToCheck(t *testing.T) {
	files, err := readNative(os.DirFS("../.."))
	require.NoError(t, err)
	assert.NotEmpty(t, files, "there is nothing to check")
}

// nativeTree is a memory that arrays use, without a breach, but for what is
// changed of it: texts by name, "" for a file that is not there.
func nativeTree(changed map[string]string) fstest.MapFS {
	files := map[string]string{
		"base/python.h": "#ifndef HAMR_H\n#define HAMR_H\n#include <Python.h>\n#define FAST(f) ((void *)(f))\n#endif\n",
		"core/core.h":   "#include \"base/python.h\"\nextern uint64_t generation; /* array_new */\nint core_load(void);\n",
		"core/core.c": "#include \"core/core.h\"\n\n#include \"base/python.h\"\n\nuint64_t generation = 1;\n" +
			"static int touched;\n" +
			"static int load(void) { return touched; }\nint core_load(void) { return load(); }\n",
		"memory/block.h": "#include \"base/python.h\"\ntypedef struct Block { void *owner; char closed; } Block;\n" +
			"enum { FIRST = 1, LAST };\nextern Block *spare;\nBlock *block_new(int kind); /* an array's */\n" +
			"static inline int block_kind(const Block *block) { return block->closed; }\n",
		"memory/block.c": "#include \"memory/block.h\"\n\n#include \"base/python.h\"\n#include \"core/core.h\"\n\n" +
			"struct Secret { int open; };\ntypedef int (*Call)(void);\n" +
			"static const char *const names[] = {\"array_new()\", \"'\"};\n" +
			"Block *spare;\n_Static_assert(LAST == 2, \"array_new\");\n" +
			"Block *block_new(int kind) {\n    struct Secret array = {.open = kind};\n" +
			"    return core_load() < 0 ? 0 : array.array_new;\n}\n",
		"array/array.h": "#include \"memory/block.h\"\n#define OPEN(self) \\\n    if (block_kind(self)) return 0\n" +
			"void *array_new(Block *block);\n",
		"array/array.c": "#include \"array/array.h\"\n\n#include \"memory/block.h\"\n\n" +
			"#define ACCESSOR(name) static int name(Block *block) { OPEN(block); return 1; }\n\n" +
			"ACCESSOR(first)\nACCESSOR(second)\n\nvoid *array_new(Block *block) { return first(block) ? spare : 0; }\n",
		"surface/module.c": "#include \"array/array.h\"\n\nPyMODINIT_FUNC PyInit__native(void) { return array_new(0); }\n",
	}
	maps.Copy(files, changed)
	tree := fstest.MapFS{"python/hamr/a.c": {Data: []byte("int elsewhere(void);")}}
	for name, text := range files {
		if text != "" {
			tree[nativeRoot+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return tree
}

func TestNativeWithoutBreach(t *testing.T) {
	breaches, err := checkNative(nativeTree(nil))
	require.NoError(t, err)
	assert.Empty(t, breaches)
}

func TestNativeBreachesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"a floor above": {
			"memory/view.c", "#include \"array/array.h\"\nstatic void *view(void) { return array_new(0); }\n",
			[]string{"memory/view.c: uses array_new of array/array.h, a floor above"},
		},
		"a floor above, in a header": {
			"core/extra.h", "#include \"memory/block.h\"\nBlock *core_block(void);\n",
			[]string{"core/extra.h: uses Block of memory/block.h, a floor above"},
		},
		"a floor above, in a macro": {
			"core/extra.h", "#include \"memory/block.h\"\n#define SPARE (spare)\n",
			[]string{"core/extra.h: uses spare of memory/block.h, a floor above"},
		},
		"a floor above, by the folder beside": {
			"core/extra.c", "#include \"../memory/block.h\"\nstatic int last = LAST;\n",
			[]string{"core/extra.c: uses LAST of memory/block.h, a floor above"},
		},
		"a floor above, without a header": {
			"memory/view.c", "void *array_new(void *block);\nstatic void *view(void) { return array_new(0); }\n",
			[]string{
				"memory/view.c: array_new is neither static nor declared in memory/view.h",
				"memory/view.c: uses array_new and does not include array/array.h",
				"memory/view.c: uses array_new of array/array.h, a floor above",
			},
		},
		"a circle of two": {
			"core/core.c", "#include \"core/core.h\"\n#include \"core/errors.h\"\nuint64_t generation;\n" +
				"int core_load(void) { return core_raise(); }\n",
			[]string{"a circle: core/core uses core/errors uses core/core"},
		},
		"a circle of three": {
			"core/core.c", "#include \"core/core.h\"\n#include \"core/long.h\"\nuint64_t generation;\n" +
				"int core_load(void) { return core_long(); }\n",
			[]string{"a circle: core/core uses core/long uses core/errors uses core/core"},
		},
		"a header that is not included": {
			"array/array.c", "#include \"array/array.h\"\nvoid *array_new(Block *block) { return block; }\n",
			[]string{"array/array.c: uses Block and does not include memory/block.h"},
		},
		"a header for nothing": {
			"surface/module.c", "#include \"array/array.h\"\n#include \"core/core.h\"\n" +
				"static void *f(void) { return array_new(0); }\n",
			[]string{"surface/module.c: includes core/core.h and uses nothing of it"},
		},
		"a header for nothing, of a floor above": {
			"core/core.c", "#include \"core/core.h\"\n#include \"array/array.h\"\nuint64_t generation;\n" +
				"int core_load(void) { return 0; }\n",
			[]string{"core/core.c: includes array/array.h and uses nothing of it"},
		},
		"not its own header": {
			"core/core.c", "uint64_t generation;\nint core_load(void) { return 0; }\n",
			[]string{"core/core.c: does not include its own core/core.h"},
		},
		"a function that is not static": {
			"core/core.c", "#include \"core/core.h\"\nuint64_t generation;\nint helper(int (*f)(void)) { return f(); }\n" +
				"int core_load(void) { return helper(0); }\n",
			[]string{"core/core.c: helper is neither static nor declared in core/core.h"},
		},
		"a variable that is not static": {
			"array/extra.c", "int numbers[2] = {1, 2};\n",
			[]string{"array/extra.c: numbers is neither static nor declared in array/extra.h"},
		},
		"another file's function": {
			"core/errors.c", "#include \"core/errors.h\"\n#include \"core/core.h\"\nint core_load(void) { return 0; }\n" +
				"int core_raise(void) { return 0; }\n",
			[]string{"core/errors.c: core_load is neither static nor declared in core/errors.h"},
		},
		"two declarations": {
			"core/errors.h", "int core_load(void);\nint core_raise(void);\n",
			[]string{"core/errors.h: core_load is declared in core/core.h, too"},
		},
		"no floor":            {"cellar/a.c", "static int a;\n", []string{"cellar/a.c: its folder is no floor"}},
		"no folder":           {"a.c", "static int a;\n", []string{"a.c: its folder is no floor"}},
		"a folder of a floor": {"core/deep/a.c", "static int a;\n", []string{"core/deep/a.c: its folder is no floor"}},
	} {
		t.Run(name, func(t *testing.T) {
			changed := map[string]string{
				"core/errors.h": "int core_raise(void);\n",
				"core/errors.c": "#include \"core/errors.h\"\n#include \"core/core.h\"\n" +
					"int core_raise(void) { return core_load(); }\n",
				"core/long.h": "int core_long(void);\n",
				"core/long.c": "#include \"core/long.h\"\n#include \"core/errors.h\"\n" +
					"int core_long(void) { return core_raise(); }\n",
			}
			changed[c.file] = c.text
			breaches, err := checkNative(nativeTree(changed))
			require.NoError(t, err)
			for _, want := range c.want {
				assert.Condition(t, func() bool {
					for _, b := range breaches {
						if len(b) >= len(want) && b[:len(want)] == want {
							return true
						}
					}
					return false
				}, "%q is not in %q", want, breaches)
			}
			if name != "two declarations" && name != "another file's function" {
				assert.Len(t, breaches, len(c.want), "%q", breaches)
			}
		})
	}
}

func TestNativeCirclesAreNamedOnce(t *testing.T) {
	uses := func(units ...string) map[string]bool {
		all := map[string]bool{}
		for _, u := range units {
			all[u] = true
		}
		return all
	}
	assert.Equal(t, []string{"a circle: a uses b uses a", "a circle: x uses y uses z uses x"},
		nativeCircles(map[string]map[string]bool{
			"a": uses("b", "x"), "b": uses("c", "a"), "c": uses("b"), "d": uses("a", "x"),
			"x": uses("y"), "y": uses("z"), "z": uses("x", "leaf"),
		}))
}
