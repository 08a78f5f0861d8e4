package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

const core = "gobuffer"

// wrappers are the methods that a Buffer has of its Array, and a Slice of its Handle.
func wrappers(tree fs.FS) (string, error) {
	methods := map[string][]*ast.FuncDecl{}
	imports := map[string]string{}
	err := eachFile(tree, core, func(text []byte, file *ast.File) {
		if isGenerated(text) {
			return
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.IsExported() {
				methods[receiver(f)] = append(methods[receiver(f)], f)
			}
		}
		for _, i := range file.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			imports[path[strings.LastIndex(path, "/")+1:]] = path
		}
	})
	if err != nil {
		return "", err
	}
	var b, head strings.Builder
	used := map[string]bool{}
	for _, w := range [][4]string{{"b", "Buffer", "Array", "array"}, {"s", "Slice", "Handle", "handle"}} {
		is, of, its, find := w[0], w[1], w[2], w[3]
		fmt.Fprintf(&b, "\n// %s is nil where %s is.\nfunc (%s *%s[T]) %s() *%s {\n"+
			"\tif %s == nil {\n\t\treturn nil\n\t}\n\treturn %s.%s\n}\n",
			find, is, is, of, find, its, is, is, its)
		slices.SortFunc(methods[its], func(a, b *ast.FuncDecl) int { return cmp.Compare(a.Name.Name, b.Name.Name) })
		for _, f := range methods[its] {
			if slices.ContainsFunc(methods[of], func(o *ast.FuncDecl) bool { return o.Name.Name == f.Name.Name }) {
				continue
			}
			note(f.Type, used)
			fmt.Fprintf(&b, "\n// %s is [%s.%s].\n%s", f.Name.Name, its, f.Name.Name, forward(f, is, of, find))
		}
	}
	head.WriteString("// " + mark("the methods of Array and Handle") + "\n\npackage gobuffer\n\nimport (\n")
	for _, ours := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(used)) {
			if path := imports[name]; strings.HasPrefix(path, "hamr/") == ours {
				head.WriteString("\t\"" + path + "\"\n")
			}
		}
		head.WriteString("\n")
	}
	head.WriteString(`)

// The methods that a Buffer has of its Array, and a Slice of its Handle. Were they those of the embedded pointer alone,
// a nil Buffer's would end the program before they are entered.
`)
	text, err := format.Source([]byte(head.String() + b.String()))
	return string(text), err
}

func receiver(f *ast.FuncDecl) string {
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	return fmt.Sprint(kind)
}

// note adds the packages that a type names.
func note(kind ast.Node, used map[string]bool) {
	ast.Inspect(kind, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			used[fmt.Sprint(s.X)] = true
		}
		return true
	})
}

func forward(f *ast.FuncDecl, is, of, find string) string {
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if name.Name == is {
				name.Name = "other"
			}
		}
	}
	var signature bytes.Buffer
	_ = printer.Fprint(&signature, token.NewFileSet(), f.Type)
	var given []string
	for _, field := range f.Type.Params.List {
		_, variadic := field.Type.(*ast.Ellipsis)
		for _, name := range field.Names {
			if variadic {
				given = append(given, name.Name+"...")
				continue
			}
			given = append(given, name.Name)
		}
	}
	call := fmt.Sprintf("%s.%s().%s(%s)", is, find, f.Name.Name, strings.Join(given, ", "))
	if f.Type.Results != nil {
		call = "return " + call
	}
	return fmt.Sprintf("func (%s *%s[T]) %s%s { %s }\n", is, of, f.Name.Name,
		strings.TrimPrefix(signature.String(), "func"), call)
}
