package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// listed is a package as "go list" tells of it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	Standard                bool
}

// ties are the names that each file of a package uses of each other file.
type ties map[string]map[string][]string

// pkg is what the files of a package have to do with each other, tests aside.
type pkg struct {
	path  string
	files []string
	ties  ties
}

// list asks go for the packages of a module and all that they import, with what the compiler exports of them.
func list(root string) (map[string]*listed, error) {
	text, err := command(root, nil, "go", "list", "-e", "-deps", "-export",
		"-json=ImportPath,Dir,Export,GoFiles,CgoFiles,Standard", "./...")
	if err != nil {
		return nil, err
	}
	packages := map[string]*listed{}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = &p
	}
}

// load reads the packages of the module at root.
func load(root string) ([]pkg, error) {
	all, err := list(root)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	exported := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		p := all[path]
		if p == nil || p.Export == "" {
			return nil, fmt.Errorf("the compiler has exported nothing of %s", path)
		}
		return os.Open(p.Export)
	})
	var found []pkg
	for _, path := range slices.Sorted(maps.Keys(all)) {
		p := all[path]
		inside, err := filepath.Rel(root, p.Dir)
		if err != nil || p.Standard || strings.HasPrefix(inside, "..") {
			continue
		}
		tied, files, err := tiesOf(set, exported, p)
		if err != nil {
			return nil, err
		}
		found = append(found, pkg{filepath.ToSlash(inside), files, tied})
	}
	return found, nil
}

// tiesOf reads one package.
func tiesOf(set *token.FileSet, imports types.Importer, p *listed) (ties, []string, error) {
	var parsed []*ast.File
	files := slices.Concat(p.GoFiles, p.CgoFiles)
	slices.Sort(files)
	for _, name := range files {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		parsed = append(parsed, file)
	}
	names := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	var first error
	config := types.Config{Importer: imports, FakeImportC: true, Error: func(err error) {
		if first == nil {
			first = err
		}
	}}
	made, _ := config.Check(p.ImportPath, set, parsed, names)
	if first != nil && len(p.CgoFiles) == 0 { // what C declares is not known here
		return nil, nil, first
	}
	found := ties{}
	for user, used := range names.Uses {
		local := used.Parent() != nil && used.Parent() != made.Scope()
		if used.Pkg() != made || local || !used.Pos().IsValid() {
			continue
		}
		from, to := fileOf(set, user.Pos()), fileOf(set, used.Pos())
		if from == to || slices.Contains(found[from][to], used.Name()) {
			continue
		}
		if found[from] == nil {
			found[from] = map[string][]string{}
		}
		found[from][to] = append(found[from][to], used.Name())
	}
	return found, files, nil
}

func fileOf(set *token.FileSet, at token.Pos) string { return filepath.Base(set.Position(at).Filename) }

// count is how many files use a name of how many others.
func (t ties) count() (n int) {
	for _, to := range t {
		n += len(to)
	}
	return n
}

// circles are the sets of files of which each one uses, by way of others perhaps, every other one: the largest first.
// They are the strongly connected components by Tarjan's algorithm.
func (t ties) circles() [][]string {
	var found [][]string
	var stack []string
	number, low, waits := map[string]int{}, map[string]int{}, map[string]bool{}
	var visit func(string)
	visit = func(file string) {
		number[file] = len(number) + 1
		low[file] = number[file]
		stack, waits[file] = append(stack, file), true
		for _, to := range slices.Sorted(maps.Keys(t[file])) {
			if number[to] == 0 {
				visit(to)
				low[file] = min(low[file], low[to])
			} else if waits[to] {
				low[file] = min(low[file], number[to])
			}
		}
		if low[file] != number[file] {
			return
		}
		at := slices.Index(stack, file)
		circle := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, name := range circle {
			waits[name] = false
		}
		if len(circle) > 1 {
			slices.Sort(circle)
			found = append(found, circle)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(t)) {
		if number[file] == 0 {
			visit(file)
		}
	}
	slices.SortStableFunc(found, func(a, b []string) int { return len(b) - len(a) })
	return found
}

// largest is how many files the largest circle has; 1 is none.
func (t ties) largest() int {
	if all := t.circles(); len(all) > 0 {
		return len(all[0])
	}
	return 1
}
