package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// crossing counts the ways from Python into the core.
type crossing struct {
	table   int // entries of the table of C functions, which python/hamr/native calls
	gopy    int // functions that gopy exports, which Python calls by name
	replies int // of these, those whose reply is text that Python would have to parse
}

// plainReplies are functions whose reply is one text, which Python takes as it is.
var plainReplies = []string{"Version", "GoVersion", "Library", "FirstAlternative"}

var entry = regexp.MustCompile(`(?m)^\s*\.\w+ = `)

// ways counts them in the tree of the module.
func ways(tree fs.FS) (c crossing, err error) {
	text, err := fs.ReadFile(tree, "pyhamr/internal/cabi/table.c")
	if err != nil {
		return c, err
	}
	c.table = len(entry.FindAll(text, -1))
	names, err := fs.Glob(tree, "pyhamr/*.go")
	if err != nil {
		return c, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return c, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return c, err
		}
		c.add(file)
	}
	return c, nil
}

func (c *crossing) add(file *ast.File) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !f.Name.IsExported() {
			continue
		}
		c.gopy++
		if f.Type.Results == nil || len(f.Type.Results.List) == 0 {
			continue
		}
		if of, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && of.Name == "string" &&
			!slices.Contains(plainReplies, f.Name.Name) {
			c.replies++
		}
	}
}
