package main

import (
	"fmt"
	"go/ast"
	"io/fs"
	"strings"
)

// methodsOf are the methods of a type, with the types of their parameters.
func methodsOf(tree fs.FS, folder, of string) (map[string][]string, error) {
	found := map[string][]string{}
	return found, eachFile(tree, folder, func(_ []byte, file *ast.File) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && receiver(f) == of {
				found[f.Name.Name] = []string{}
				for _, kind := range typesOf(f.Type.Params) {
					found[f.Name.Name] = append(found[f.Name.Name], strings.ReplaceAll(kind, "bridge.", folder+"."))
				}
			}
		}
	})
}

// change is a function that C calls for a method of the core's arrays, for which the bridge needs nothing of its own.
// Of other arrays the method has one at most.
func change(f function, types []string) (string, error) {
	given := f.parameters[1 : len(f.parameters)-1]
	if len(types) != len(given) {
		return "", fmt.Errorf("the method of gobuffer.Array takes %v", types)
	}
	other, arguments := "nil", []string{}
	for i, kind := range types {
		if kind == "*gobuffer.Array" && given[i].kind == "hamr_array *" && other == "nil" {
			other = "descriptor(" + goName(given[i].name) + ")"
			arguments = append(arguments, "b")
			continue
		}
		a, used, err := argument(given[i:i+1], kind)
		if err != nil || used != 1 {
			return "", err
		}
		arguments = append(arguments, a.text)
	}
	return opening(f) + fmt.Sprintf("\treturn failure(bridge.Change(descriptor(array), %s, descriptor(becomes), "+
		"func(a, b *gobuffer.Array) error { return a.%s(%s) }))\n}\n",
		other, camel(f.name), strings.Join(arguments, ", ")), nil
}

// call is a function that C calls for a method of the store's clients, which sets nothing. What it is given is read
// before it begins: it may go on after it has returned.
func call(f function, types []string) (string, error) {
	rest := f.parameters[2:] // behind how and session
	arguments, reads := []string{"ctx"}, ""
	for i, kind := range types[1:] {
		a, used, err := argument(rest, kind)
		if err != nil {
			return "", err
		}
		reads += fmt.Sprintf("\tgiven%d := %s\n", i, a.text)
		arguments = append(arguments, fmt.Sprintf("given%d", i))
		rest = rest[used:]
	}
	if len(rest) > 0 {
		return "", fmt.Errorf("%v: the method of store.Client takes %v", rest, types)
	}
	return opening(f) + reads + fmt.Sprintf("\treturn failure(asking(how, session).Change("+
		"func(ctx context.Context, c *store.Client) error { return c.%s(%s) }))\n}\n",
		camel(f.name), strings.Join(arguments, ", ")), nil
}
