package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

const (
	bridge = "pyhamr/internal/bridge"
	cabi   = "pyhamr/internal/cabi"
)

// ownTables is the C of the library's own tables.
func ownTables(own, store table) string {
	var b strings.Builder
	b.WriteString("/* " + mark("include/hamr/functions.h and store_functions.h") + " */\n")
	b.WriteString("#include \"table.h\"\n#include \"_cgo_export.h\"\n\n#include <stdlib.h>\n")
	b.WriteString("\nstatic const hamr_store_functions store = {\n")
	for _, f := range store.entries {
		fmt.Fprintf(&b, "    .%s = %s,\n", f.name, exportedName(f))
	}
	b.WriteString("};\n\nhamr_functions hamr_own_functions = {\n    .version = HAMR_ABI_VERSION,\n")
	for _, f := range own.entries {
		is := exportedName(f)
		if c, ok := inC[f.name]; ok {
			is = c
		}
		fmt.Fprintf(&b, "    .%s = %s,\n", f.name, is)
	}
	b.WriteString("    .devices = &hamr_known_devices,\n    .store = &store,\n};\n")
	return b.String()
}

// inC are entries that are functions of C.
var inC = map[string]string{"free": "free", "set_raise": "hamr_set_raise"}

func exportedName(f function) string { return "hamr" + camel(f.name) }

// body is a function of the bridge.
type body struct {
	parameters, results []string // types, as the bridge spells them
}

var (
	exported = regexp.MustCompile(`(?m)^//export (hamr\w+)$`)
	goWords  = regexp.MustCompile(
		`^(type|range|func|map|chan|var|go|select|interface|package|import|defer|unsafe|len|err)$`)
)

// exports is the Go of the entries whose functions are written by nobody: calls of the bridge's functions of the same
// name. What a C type is in Go follows from the type that the bridge's function has there.
func exports(tree fs.FS, tables ...table) (string, error) {
	bodies, err := bodiesOf(tree)
	if err != nil {
		return "", err
	}
	written, err := writtenExports(tree)
	if err != nil {
		return "", err
	}
	methods, err := methodsOf(tree, core, "Array")
	if err != nil {
		return "", err
	}
	calls, err := methodsOf(tree, "store", "Client")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, t := range tables {
		for _, f := range t.entries {
			if _, ok := inC[f.name]; ok || written[exportedName(f)] {
				continue
			}
			one, ok := bodies[camel(f.name)]
			types, isMethod := methods[camel(f.name)]
			if !ok && isMethod && isChange(f) {
				text, err := change(f, types)
				if err != nil {
					return "", fmt.Errorf("%s of %s: %w", f.name, t.name, err)
				}
				b.WriteString(text)
				continue
			}
			if types, isCall := calls[camel(f.name)]; !ok && isCall && f.parameters[0].name == "how" {
				text, err := call(f, types)
				if err != nil {
					return "", fmt.Errorf("%s of %s: %w", f.name, t.name, err)
				}
				b.WriteString(text)
				continue
			}
			if !ok {
				return "", fmt.Errorf("%s of %s: %s has no function %s, and %s none of its own",
					f.name, t.name, bridge, camel(f.name), cabi)
			}
			text, err := export(f, one)
			if err != nil {
				return "", fmt.Errorf("%s of %s: %w", f.name, t.name, err)
			}
			b.WriteString(text)
		}
	}
	head := "// " + mark("include/hamr/functions.h and store_functions.h") +
		"\n\npackage cabi\n\n// #include \"constant.h\"\nimport \"C\"\n\nimport (\n"
	for _, path := range []string{"context", "unsafe", "", "hamr/arrayiface", "hamr/backends", "hamr/gobuffer",
		"hamr/pyhamr/internal/bridge", "hamr/store"} {
		if path == "" {
			head += "\n"
		} else if regexp.MustCompile(`\b` + path[strings.LastIndex(path, "/")+1:] + `\.`).MatchString(b.String()) {
			head += "\t\"" + path + "\"\n"
		}
	}
	text, err := format.Source([]byte(head + ")\n" + b.String()))
	return string(text), err
}

// bodiesOf are the functions of the bridge.
func bodiesOf(tree fs.FS) (map[string]body, error) {
	found := map[string]body{}
	return found, eachFile(tree, bridge, func(_ []byte, file *ast.File) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
				found[f.Name.Name] = body{typesOf(f.Type.Params), typesOf(f.Type.Results)}
			}
		}
	})
}

// writtenExports are the functions that package cabi has by hand.
func writtenExports(tree fs.FS) (map[string]bool, error) {
	found := map[string]bool{}
	return found, eachFile(tree, cabi, func(text []byte, _ *ast.File) {
		if isGenerated(text) {
			return
		}
		for _, name := range exported.FindAllSubmatch(text, -1) {
			found[string(name[1])] = true
		}
	})
}

func isGenerated(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.Contains(first, []byte("DO NOT EDIT."))
}

func eachFile(tree fs.FS, folder string, do func(text []byte, file *ast.File)) error {
	names, err := fs.Glob(tree, folder+"/*.go")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(name, "_test.go") {
			do(text, file)
		}
	}
	return nil
}

// typesOf spells the types of a list; names that are the bridge's own get its name before them.
func typesOf(list *ast.FieldList) (types []string) {
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		var b bytes.Buffer
		_ = printer.Fprint(&b, token.NewFileSet(), field.Type)
		kind := own.ReplaceAllString(b.String(), "${1}bridge.$2")
		for range max(1, len(field.Names)) {
			types = append(types, kind)
		}
	}
	return types
}

var own = regexp.MustCompile(`(^|[^.\w])([A-Z]\w*)`)

// export is a function that C calls.
func export(f function, b body) (string, error) {
	var arguments, before []string
	rest := f.parameters
	for _, kind := range b.parameters {
		a, used, err := argument(rest, kind)
		if err != nil {
			return "", err
		}
		if a.before != "" {
			before = append(before, a.before)
		}
		arguments = append(arguments, a.text)
		rest = rest[used:]
	}
	call := fmt.Sprintf("bridge.%s(%s)", camel(f.name), strings.Join(arguments, ", "))
	var text strings.Builder
	text.WriteString(opening(f) + strings.Join(before, ""))
	err := finish(&text, f, call, b.results, rest)
	text.WriteString("}\n")
	return text.String(), err
}

// opening is how the exported function of an entry begins, up to its body.
func opening(f function) string {
	var parameters []string
	for _, p := range f.parameters {
		parameters = append(parameters, goName(p.name)+" "+goType(p.kind))
	}
	name, result := exportedName(f), ""
	if f.result != "void" {
		result = goType(f.result) + " "
	}
	return fmt.Sprintf("\n//export %s\nfunc %s(%s) %s{\n", name, name, strings.Join(parameters, ", "), result)
}

// finish writes the call and what becomes of its results, of which those before the error are set at the addresses that
// are left of the parameters.
func finish(text *strings.Builder, f function, call string, results []string, left []parameter) error {
	fails := len(results) > 0 && results[len(results)-1] == "error"
	values := results
	if fails {
		values = results[:len(results)-1]
	}
	switch {
	case f.result == "hamr_error *" && fails && len(values) == len(left):
	case f.result != "hamr_error *" && len(values) == 1 && !fails && len(left) == 0:
		back, err := answer(f.result, values[0], call)
		fmt.Fprintf(text, "\treturn %s\n", back)
		return err
	case f.result == "void" && len(values) == 0 && len(left) == 0:
		if fails {
			call = "complain(" + call + ")"
		}
		fmt.Fprintf(text, "\t%s\n", call)
		return nil
	default:
		return fmt.Errorf("%v does not fit the results %v of Go", left, results)
	}
	if len(values) == 0 {
		fmt.Fprintf(text, "\treturn failure(%s)\n", call)
		return nil
	}
	var gives, sets []string
	for i, p := range left {
		gives = append(gives, fmt.Sprintf("made%d", i))
		back, err := answer(strings.TrimSuffix(strings.TrimSuffix(p.kind, "*"), " "), values[i], gives[i])
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		sets = append(sets, fmt.Sprintf("\t*%s = %s\n", goName(p.name), back))
	}
	fmt.Fprintf(text, "\t%s, err := %s\n\tif err != nil {\n\t\treturn failure(err)\n\t}\n%s\treturn nil\n",
		strings.Join(gives, ", "), call, strings.Join(sets, ""))
	return nil
}

// goName is a parameter's name in Go.
func goName(name string) string {
	name = strings.ToLower(name[:1]) + camel(name)[1:]
	if goWords.MatchString(name) {
		return "its" + camel(name)
	}
	return name
}

// goType is what cgo calls a type of C's.
func goType(kind string) string {
	switch kind {
	case "void *":
		return "unsafe.Pointer"
	case "hamr_array *const *":
		return "*C.constant_array"
	}
	base := strings.Trim(kind, " *")
	stars := strings.Count(kind, "*")
	if constant, ok := strings.CutPrefix(base, "const "); ok {
		short := strings.TrimPrefix(strings.TrimPrefix(constant, "hamr_store_"), "hamr_")
		base = "constant_" + strings.TrimSuffix(short, "_t")
	}
	return strings.Repeat("*", stars) + "C." + base
}

// given is what the bridge is given for one or two parameters of C's.
type given struct{ text, before string }

var numbers = []string{"int32_t", "uint32_t", "int64_t", "uint64_t", "int"}

// argument is that for a type of Go, and how many parameters it takes.
func argument(rest []parameter, kind string) (given, int, error) {
	if len(rest) == 0 {
		return given{}, 0, fmt.Errorf("there is no parameter for a %s of Go", kind)
	}
	first, name := rest[0].kind, goName(rest[0].name)
	if len(rest) > 1 {
		next := goName(rest[1].name)
		switch [3]string{first, rest[1].kind, kind} {
		case [3]string{"int32_t", "const int64_t *", "[]int"}:
			list := fmt.Sprintf("\t%sList, err := shapeOf(%s, %s)\n", next, name, next)
			return given{next + "List", list + "\tif err != nil {\n\t\treturn failure(err)\n\t}\n"}, 2, nil
		case [3]string{"const void *", "int64_t", "[]byte"}:
			return given{text: fmt.Sprintf("unsafe.Slice((*byte)(unsafe.Pointer(%s)), %s)", name, next)}, 2, nil
		case [3]string{"const void *", "size_t", "[]byte"}:
			return given{text: fmt.Sprintf("copied(%s, %s)", name, next)}, 2, nil
		case [3]string{"uint64_t", "hamr_finished_function", "func()"}:
			return given{text: fmt.Sprintf("release(%s, %s)", name, next)}, 2, nil
		case [3]string{"uint32_t", "uint64_t", "bridge.Asking"}:
			return given{text: fmt.Sprintf("asking(%s, %s)", name, next)}, 2, nil
		}
	}
	text, ok := conversions[[2]string{first, kind}]
	if !ok && slices.Contains(numbers, first) && !strings.ContainsAny(kind, "*[( ") {
		text, ok = kind+"(%s)", true
	}
	if !ok {
		return given{}, 0, fmt.Errorf("%s: %s is no %s of Go's", rest[0].name, first, kind)
	}
	return given{text: fmt.Sprintf(text, name)}, 1, nil
}

// conversions are of a type of C's to one of Go's.
var conversions = map[[2]string]string{
	{"hamr_array *", "*bridge.Descriptor"}:             "descriptor(%s)",
	{"int32_t", "bool"}:                                "%s != 0",
	{"int64_t", "time.Duration"}:                       "patience(%s)",
	{"const char *", "string"}:                         "goString(%s)",
	{"hamr_store_text", "string"}:                      "text(%s)",
	{"const hamr_store_id *", "store.ID"}:              "object(%s)",
	{"const hamr_store_id *", "bridge.StoreID"}:        "object(%s)",
	{"hamr_store_id *", "*bridge.StoreID"}:             "setObject(%s)",
	{"uint64_t *", "*uint64"}:                          "number(%s)",
	{"int32_t *", "*int32"}:                            "flag(%s)",
	{"void *", "unsafe.Pointer"}:                       "%s",
	{"void *", "uint64"}:                               "uint64(uintptr(%s))",
	{"const void *", "uint64"}:                         "uint64(uintptr(unsafe.Pointer(%s)))",
	{"hamr_sharing *", "*bridge.Sharing"}:              "(*bridge.Sharing)(unsafe.Pointer(%s))",
	{"char **", "func(text string)"}:                   "func(made string) { *%s = C.CString(made) }",
	{"hamr_store_report **", "func(store.Statistics)"}: "func(found store.Statistics) { *%s = reported(found) }",
	{"hamr_store_events **", "func([]store.Event)"}:    "func(found []store.Event) { *%s = told(found) }",
	{"hamr_store_page **", "func(list []store.Info, next uint64)"}: "func(list []store.Info, next uint64) " +
		"{ *%s = paged(list, next) }",
}

// answers are of a type of Go's to one of C's.
var answers = map[[2]string]string{
	{"int32_t", "bool"}:                         "truth(%s)",
	{"int64_t", "time.Duration"}:                "C.int64_t(%s.Nanoseconds())",
	{"char *", "string"}:                        "C.CString(%s)",
	{"hamr_strings *", "[]string"}:              "strings(%s)",
	{"hamr_strings *", "[][2]string"}:           "strings(pairs(%s))",
	{"hamr_rows *", "bridge.Rows"}:              "rowsOf(%s)",
	{"hamr_store_report *", "store.Statistics"}: "reported(%s)",
}

func answer(to, kind, value string) (string, error) {
	if text, ok := answers[[2]string{to, kind}]; ok {
		return fmt.Sprintf(text, value), nil
	}
	if slices.Contains(numbers, to) && !strings.ContainsAny(kind, "*[( ") {
		return fmt.Sprintf("C.%s(%s)", to, value), nil
	}
	return "", fmt.Errorf("a %s of Go's is no %s", kind, to)
}
