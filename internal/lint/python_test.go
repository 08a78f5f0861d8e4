package lint

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// python is a tree of modules of the package, named from its folder.
func python(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[pythonRoot+"/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func TestBreachesOfPythonAreFound(t *testing.T) {
	const upward = "hamr._base may not import hamr._buffer"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"relative", map[string]string{"_base/a.py": "from .._buffer.b import x\n"}, upward + ".b"},
		{"of a name that is a module", map[string]string{"_base/a.py": "from .._buffer import b\n", "_buffer/b.py": ""},
			upward + ".b"},
		{"of the folder", map[string]string{"_base/a.py": "from .. import _buffer\n", "_buffer/__init__.py": ""}, upward},
		{"in brackets", map[string]string{"_base/a.py": "from .._buffer.b import (  # why\n    x,\n    y as z,\n)\n"},
			upward + ".b"},
		{"over a line's end", map[string]string{"_base/a.py": "from \\\n    .._buffer.b import x\n"}, upward + ".b"},
		{"absolute", map[string]string{"_base/a.py": "import os, hamr._buffer.b as b\n"}, upward + ".b"},
		{"absolute, from", map[string]string{"_base/a.py": "from hamr._buffer.b import x\n"}, upward + ".b"},
		{"inside a function", map[string]string{"_base/a.py": "def f():\n    \"\"\"Doc.\"\"\"\n" +
			"    from .._buffer.b import x\n"}, upward + ".b"},
		{"behind a colon", map[string]string{"_base/a.py": "try: from .._buffer.b import x\nexcept ImportError: pass\n"},
			upward + ".b"},
		{"behind a semicolon", map[string]string{"_base/a.py": "x = 1; import hamr._buffer.b\n"}, upward + ".b"},
		{"for type checkers", map[string]string{"_base/a.py": "if TYPE_CHECKING:\n    from .._buffer.b import X\n"},
			upward + ".b"},
		{"by name", map[string]string{"_base/a.py": "import_module(\"hamr._buffer.b\")\n", "_buffer/b.py": ""}, upward +
			".b"},
		{"of the whole", map[string]string{"_base/a.py": "def f():\n    import hamr\n"}, "hamr._base may not import hamr"},
		{"of the whole's names", map[string]string{"_base/a.py": "from .. import Buffer\n"},
			"hamr._base may not import hamr"},
		{"in a stub", map[string]string{"_native.pyi": "from ._buffer.b import Buffer\n"},
			"hamr._native may not import hamr._buffer.b"},
		{"of a surface", map[string]string{"_upstream/a.py": "from ..dask import x\n"},
			"hamr._upstream may not import hamr.dask"},
		{"over a floor", map[string]string{"_protocols/a.py": "from .._buffer.b import x\n"},
			"hamr._protocols may not import hamr._buffer.b"},
		{"by a table", map[string]string{
			"__init__.py": "_LATE = {\"main\": \"cli\"}\nimport_module(\".\" + _LATE[name], __name__)\n",
			"cli.py":      "",
		}, "hamr may not import hamr.cli"},
		{"unknown", map[string]string{"surprise.py": ""}, "no rule says what hamr.surprise may import"},
		{"unknown folder", map[string]string{"surprise/a.py": ""}, "no rule says what hamr.surprise may import"},

		{"two", map[string]string{"_base/a.py": "from .b import x\n", "_base/b.py": "def f():\n    from .a import y\n"},
			"a circle of imports: hamr._base.a -> hamr._base.b -> hamr._base.a"},
		{"three", map[string]string{"_base/a.py": "from . import b\n", "_base/b.py": "import hamr._base.c\n",
			"_base/c.py": "from .a import x\n"},
			"hamr._base.a -> hamr._base.b -> hamr._base.c -> hamr._base.a"},
		{"for type checkers", map[string]string{"_base/a.py": "from .b import x\n",
			"_base/b.py": "if TYPE_CHECKING:\n    from .a import X\n"},
			"hamr._base.a -> hamr._base.b -> hamr._base.a"},
		{"of a module and its package", map[string]string{"_base/__init__.py": "from .a import x\n",
			"_base/a.py": "from . import y\n"},
			"hamr._base -> hamr._base.a -> hamr._base"},
		{"by a table", map[string]string{
			"_protocols/a.py": "TABLE = (\n    (\"x\", \"b\"),\n)\n\n\ndef f(module):\n" +
				"    import_module(\".\" + module, __package__)\n",
			"_protocols/b.py": "from .a import x\n",
		}, "hamr._protocols.a -> hamr._protocols.b -> hamr._protocols.a"},

		{"a function", map[string]string{"_base/a.py": "def a(x: int) -> int:\n    return x\n"},
			"_base/a.py: the module is named like a, which it defines"},
		{"a class", map[string]string{"_base/a.py": "class a:\n    pass\n"}, "named like a, which it defines"},
		{"another name of a class", map[string]string{"_base/a.py": "class A: ...\na = A\n"},
			"named like a, which it defines"},
		{"the package's function", map[string]string{"_base/__init__.py": "def a(): ...\n", "_base/a.py": ""},
			"named like a, which hamr._base exports"},
		{"what the package lists", map[string]string{"__init__.py": "__all__ = [\n    \"cli\",\n]\n", "cli.py": ""},
			"named like cli, which hamr exports"},
		{"what the package imports", map[string]string{"__init__.py": "from ._base.b import x as _base\n",
			"_base/b.py": "", "_base/__init__.py": ""},
			"_base/__init__.py: the module is named like _base, which hamr exports"},
	} {
		t.Run(c.want+"/"+c.name, func(t *testing.T) {
			breaches, err := Check(python(c.files))
			require.NoError(t, err)
			require.Len(t, breaches, 1)
			assert.Contains(t, breaches[0], c.want)
		})
	}
}

func TestWhatIsAllowedInPython(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"downwards": {
			"__init__.py":     "from ._buffer.b import B\nfrom ._base.a import f\n",
			"_buffer/b.py":    "from .._base.a import f\nfrom .._protocols.p import g\nfrom .. import _native\n",
			"_protocols/p.py": "from .._base import a\nfrom hamr import _native\n",
			"_base/a.py":      "import os.path as path, sys\nfrom . import other\n",
			"_base/other.py":  "from .. import _native\n",
			"cli.py":          "def f():\n    import hamr\n    from ._base.a import f\n",
			"__main__.py":     "from .cli import main\n",
		},
		"no imports": {
			"_base/a.py": "# from .._buffer.b import x\n" +
				"\"\"\"Text:\nfrom .._buffer.b import x\n'''\n\"\"\"\n" +
				"x = 'import hamr._buffer.b'; y = \"\\\"\\nimport hamr._buffer.b\"\n" +
				"z = [\n  'from .._buffer.b import x',\n  # import hamr._buffer.b\n]\n" +
				"raise X from error\nimport_name = from_x\n",
		},
		"a name of a module in other packages": {
			"__init__.py":       "from ._base.b import b_of\n__all__ = [\"dlpack\"]\n",
			"_base/b.py":        "def b_of(): ...\n\n\nclass B:\n    def b(self): ...\n\n\nif b == 1:\n    pass\n",
			"_buffer/dlpack.py": "from .._base.b import B\n",
		},
		"names that are read by no import": {
			"_protocols/a.py": "NAMES = (\"b\", \"hamr._buffer.b\")\n",
			"_protocols/b.py": "from .a import NAMES\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			breaches, err := Check(python(files))
			require.NoError(t, err)
			assert.Empty(t, breaches)
		})
	}
}
