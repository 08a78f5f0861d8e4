// Package lint checks what the compiler does not: which package may import
// which, in Go and in Python, that each says what it is for, and that files stay short enough to
// read.
package lint

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const (
	module    = "hamr"
	purego    = "github.com/ebitengine/purego"
	mostLines = 450
)

// rule says what the packages of a folder may import of this module, tests
// aside. Folders are named from the root; a pattern's * is one path element, and
// /... is the folder with all below it.
type rule struct {
	folder  string
	imports []string
}

// rules are tried in order: the first whose folder matches holds.
var rules = []rule{
	{"arrayiface/...", []string{"arrayiface/internal/..."}},
	{"backends", nil},
	{"backends/all", []string{"backends", "backends/*"}},
	{"backends/backendtest", []string{"backends", "backends/internal/worker"}},
	{"backends/internal/dl", nil},
	{"backends/internal/forked", nil},
	{"backends/internal/worker", nil},
	{"backends/internal/pool", []string{"backends"}},
	{"backends/internal/queues", []string{"backends"}},
	{"backends/waiting", nil},
	{"backends/internal/setting", nil},
	{"backends/internal/rtc", []string{"backends", "backends/internal/dl"}},
	{"backends/internal/staging", []string{"backends", "backends/waiting", "backends/internal/setting"}},
	// HIP is CUDA in other words: see cuda.Dialect.
	{"backends/hip", []string{"backends", "backends/cuda", "backends/internal/..."}},
	{"backends/*/...", []string{"backends", "backends/waiting", "backends/internal/...", "<own>/internal/...",
		"internal/memorylimit"}},
	{"gobuffer/internal/extents", nil},
	{"gobuffer/internal/failures", nil},
	{"gobuffer/internal/backing", []string{"backends", "gobuffer/internal/failures"}},
	{"gobuffer/internal/counts", nil},
	{"gobuffer/internal/grants", []string{"backends", "backends/waiting", "gobuffer/internal/counts"}},
	{"gobuffer/internal/released", []string{"backends", "backends/waiting", "gobuffer/internal/order"}},
	{"gobuffer/internal/relief", []string{"backends"}},
	{"gobuffer/internal/modules", []string{"backends", "gobuffer/internal/order"}},
	{"gobuffer/internal/order", []string{"backends", "backends/waiting", "gobuffer/internal/failures"}},
	{"gobuffer/...", []string{"backends", "backends/waiting", "arrayiface", "gobuffer/internal/..."}},
	{"hetero", []string{"gobuffer", "backends", "backends/waiting"}},
	{"store", []string{"gobuffer", "backends", "backends/host", "arrayiface", "internal/deadline",
		"store/internal/..."}},
	{"store/internal/protocol", []string{"arrayiface", "backends"}},
	{"store/internal/wire", []string{"store/internal/protocol"}},
	{"store/internal/chain", nil},
	{"store/internal/turn", nil},
	{"store/internal/groups", []string{"arrayiface"}},
	{"store/internal/asking", []string{"internal/deadline", "store/internal/protocol", "store/internal/wire"}},
	{"store/internal/book", []string{"backends/host", "store/internal/chain", "store/internal/protocol",
		"store/internal/wire"}},
	{"store/internal/devices", []string{"gobuffer", "backends"}},
	{"store/internal/spill", []string{"gobuffer", "backends", "backends/host", "arrayiface", "store/internal/devices",
		"store/internal/wire"}},
	// The server makes and seals the host's memory without a runtime.
	{"store/internal/memory", []string{"backends", "backends/host", "store/internal/chain", "store/internal/protocol",
		"store/internal/spill", "store/internal/turn", "store/internal/wire"}},
	{"store/internal/watch", []string{"store/internal/protocol", "store/internal/turn"}},
	{"store/internal/objects", []string{"store/internal/book", "store/internal/chain", "store/internal/memory",
		"store/internal/protocol", "store/internal/turn", "store/internal/watch", "store/internal/wire"}},
	{"store/internal/links", []string{"store/internal/protocol", "store/internal/wire"}},
	{"store/internal/server", []string{"gobuffer", "backends", "internal/memorylimit", "store/internal/..."}},
	{"pyhamr/internal/capi", []string{"backends", "pyhamr/internal/bridge", "pyhamr/internal/cabi"}},
	{"pyhamr/...", []string{"gobuffer", "hetero", "store", "arrayiface", "backends", "backends/all", "backends/nvml",
		"backends/waiting", "pyhamr/internal/...", "internal/deadline"}},
	{"examples/...", []string{"gobuffer", "hetero", "store", "arrayiface", "backends", "backends/all"}},
	{"tests/...", nil},
	{"docs/...", []string{"gobuffer", "hetero", "store", "arrayiface", "backends", "backends/all"}},
	{"internal/lint", nil},
	{"internal/house", nil},
	{"internal/deadline", nil},
	{"internal/memorylimit", nil},
	{"internal/allocatorfacts", []string{"backends"}},
	{"internal/elementtypes", []string{"arrayiface"}},
	{"internal/generated", nil},
	{"internal/facadestub", nil},
	{"internal/spellings", nil},
	{"internal/pythonsymbols", nil},
}

// testImports is what tests may use on top. Concrete backends are open to the
// tests of the buffer core, which need real memory, but not to one another's.
var testImports = []rule{
	{"backends", []string{"backends/backendtest"}},
	{"backends/*/...", []string{"backends/backendtest"}},
	{"gobuffer/...", []string{"gobuffer", "backends/*"}},
	{"hetero", []string{"backends/*"}},
	{"store/...", []string{"store", "gobuffer", "arrayiface", "backends/*"}},
	{"pyhamr/...", []string{"pyhamr", "backends/*"}},
	{"arrayiface/...", []string{"arrayiface"}},
}

// skipped are folders that hold no source of ours.
var skipped = []string{"testdata", "vendor", "node_modules", "build", "dist", "python/hamr/_gopy"}

// Check returns one line for each breach in the tree of a module, in the order
// of its files. Generated files are exempt.
func Check(tree fs.FS) ([]string, error) {
	var breaches []string
	documented := map[string]bool{} // by folder
	python := map[string][]byte{}
	var folders []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(skipped, name) ||
				slices.Contains(skipped, entry.Name())) {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !slices.Contains([]string{".go", ".c", ".h", ".cpp", ".hpp", ".f90", ".py",
			".pyi", ".pxd", ".pyx"}, path.Ext(name)) {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if path.Ext(name) != ".go" {
			if strings.HasPrefix(path.Ext(name), ".py") && strings.HasPrefix(name, pythonRoot+"/") {
				python[name] = text
			}
			breaches = append(breaches, checkLength(name, text)...)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		breaches = append(breaches, checkLength(name, text)...)
		breaches = append(breaches, checkImports(name, file)...)
		folder := path.Dir(name)
		if _, seen := documented[folder]; !seen {
			folders = append(folders, folder)
		}
		documented[folder] = documented[folder] || file.Doc != nil
		return nil
	})
	for _, folder := range folders {
		if !documented[folder] {
			breaches = append(breaches, folder+": the package has no doc comment")
		}
	}
	native, nativeErr := checkNative(tree)
	return slices.Concat(breaches, checkPython(python), native), errors.Join(err, nativeErr)
}

func checkLength(name string, text []byte) []string {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if lines := bytes.Count(text, []byte("\n")); lines > mostLines && !bytes.Contains(first, []byte("DO NOT EDIT.")) {
		return []string{fmt.Sprintf("%s: %d lines, more than %d", name, lines, mostLines)}
	}
	return nil
}

func checkImports(name string, file *ast.File) (breaches []string) {
	folder := path.Dir(name)
	allowed, known := allowedImports(folder, strings.HasSuffix(name, "_test.go"))
	if !known {
		breaches = append(breaches, fmt.Sprintf("%s: no rule says what folder %s may import", name, folder))
	}
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		if (imported == purego || strings.HasPrefix(imported, purego+"/")) && folder != "backends/internal/dl" {
			breaches = append(breaches, fmt.Sprintf("%s: only backends/internal/dl may import %s", name, purego))
		}
		ours, ok := strings.CutPrefix(imported, module+"/")
		if !ok || !known || slices.ContainsFunc(allowed, func(pattern string) bool { return match(pattern, ours) }) {
			continue
		}
		breaches = append(breaches, fmt.Sprintf("%s: %s may not import %s", name, folder, ours))
	}
	return breaches
}

func allowedImports(folder string, test bool) (patterns []string, known bool) {
	find := func(list []rule) bool {
		for _, r := range list {
			if match(r.folder, folder) {
				patterns = append(patterns, r.imports...)
				return true
			}
		}
		return false
	}
	known = find(rules)
	if test {
		find(testImports)
		patterns = append(patterns, folder) // for package x_test
	}
	patterns = slices.Clone(patterns)
	for i := range patterns {
		patterns[i] = strings.Replace(patterns[i], "<own>", backendFolder(folder), 1)
	}
	return patterns, known
}

// backendFolder is the first two elements of a folder below backends.
func backendFolder(folder string) string {
	parts := strings.SplitN(folder, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

func match(pattern, folder string) bool {
	prefix, below := strings.CutSuffix(pattern, "/...")
	want, have := strings.Split(prefix, "/"), strings.Split(folder, "/")
	if len(have) < len(want) || (!below && len(have) > len(want)) {
		return false
	}
	for i, w := range want {
		if w != "*" && w != have[i] {
			return false
		}
	}
	return true
}
