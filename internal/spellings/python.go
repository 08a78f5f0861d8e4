package main

import (
	"fmt"
	"strings"
)

// isReply says whether an entry is one that Python asks for rows.
func isReply(f function) bool { return last(f).kind == "hamr_rows **" }

// isChange says whether an entry makes an array something else.
func isChange(f function) bool { return last(f) == parameter{"becomes", "hamr_array *"} }

func last(f function) parameter {
	if len(f.parameters) == 0 {
		return parameter{}
	}
	return f.parameters[len(f.parameters)-1]
}

// unit is a file of Python's extension, with its header, and what its functions are for mypy.
type unit struct {
	name, table               string
	includes                  []string
	functions, methods, stubs strings.Builder
}

// pythonFiles are the units for the entries that Python calls, and their stub.
func pythonFiles(t, store table) (map[string]string, error) {
	replies := &unit{name: "core/replies", table: "reply_functions",
		includes: []string{"base/numbers", "base/python", "core/core", "core/rows", "core/texts"}}
	changes := &unit{name: "array/changes", table: "change_functions",
		includes: []string{"array/change", "base/numbers", "base/python"}}
	for _, f := range t.entries {
		var err error
		switch {
		case isReply(f):
			err = replies.reply(f)
		case isChange(f):
			err = changes.change(f)
		}
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", f.name, t.name, err)
		}
	}
	setters := &unit{name: "store/setters", table: "setter_functions", includes: []string{"base/python", "store/call"}}
	for _, f := range store.entries {
		if letters, arguments, typed, ok := setter(f); ok {
			name := "store_" + strings.TrimSuffix(f.name, "_object")
			fmt.Fprintf(&setters.functions, "\nSETTER(%s, %s, \"%s\", %s)\n", f.name, f.name, letters,
				strings.Join(arguments, ", "))
			setters.list(name, f, typed, "None")
		}
	}
	made := map[string]string{"python/hamr/_calls.pyi": "# " + mark("include/hamr/functions.h") +
		"\n\"\"\"What the C extension has of the core's functions, which hamr/functions.h describes.\"\"\"\n\n" +
		"from typing import Any\n\nfrom ._array import Array\nfrom ._stored import Owned\n\n" +
		replies.stubs.String() + changes.stubs.String() + setters.stubs.String()}
	for _, u := range []*unit{replies, changes, setters} {
		made["python/hamr/native/"+u.name+".c"], made["python/hamr/native/"+u.name+".h"] = u.texts()
	}
	return made, nil
}

func (u *unit) texts() (c, header string) {
	first := "/* " + mark("include/hamr/functions.h") + " */\n"
	header = first + "#pragma once\n\n#include \"base/python.h\"\n\nextern PyMethodDef " + u.table + "[];\n"
	c = first + "#include \"" + u.name + ".h\"\n\n"
	for _, name := range u.includes {
		c += "#include \"" + name + ".h\"\n"
	}
	c += u.functions.String() + "\nPyMethodDef " + u.table + "[] = {\n" + u.methods.String() +
		"    {NULL, NULL, 0, NULL},\n};\n"
	return c, header
}

// readings are how an argument is read, by its position and its name; the condition is that of a failure.
var readings = map[string]string{
	"const char *": "!(%[2]s = text_for_core(arguments[%[1]d]))",
	"int32_t":      "read_int32(arguments[%[1]d], \"%[2]s\", &%[2]s) < 0",
	"int64_t":      "((%[2]s = PyLong_AsLongLong(arguments[%[1]d])) == -1 && PyErr_Occurred())",
	"uint64_t":     "((%[2]s = PyLong_AsUnsignedLongLong(arguments[%[1]d])) == (uint64_t)-1 && PyErr_Occurred())",
}

// reply is a function that returns rows.
func (u *unit) reply(f function) error {
	given := f.parameters[:len(f.parameters)-1]
	var declared strings.Builder
	var reads, passed, typed []string
	for i, p := range given {
		reading, ok := readings[p.kind]
		if !ok {
			return fmt.Errorf("%s: Python gives no %s", p.name, p.kind)
		}
		declared.WriteString("    " + join(p.kind, p.name) + ";\n")
		reads = append(reads, fmt.Sprintf(reading, i, p.name))
		passed = append(passed, p.name)
		kind := "int"
		if p.kind == "const char *" {
			kind = "str"
		}
		typed = append(typed, p.name+": "+kind)
	}
	body := declared.String() + "    hamr_rows *rows = NULL;\n    hamr_error *error;\n"
	end := fmt.Sprintf(`    Py_BEGIN_ALLOW_THREADS
    error = core_functions()->%s(%s);
    Py_END_ALLOW_THREADS
    return rows_take(error, rows);
`, f.name, strings.Join(append(passed, "&rows"), ", "))
	u.add(f, typed, "list[tuple[Any, ...]]", body, append(reads, "core_load() < 0"), end)
	return nil
}

// change is a function that makes an array something else. Of other arrays there is one at most.
func (u *unit) change(f function) error {
	var reads, passed, typed []string
	reads, typed = []string{"change_array(arguments[0]) < 0"}, []string{"array: Array"}
	passed = []string{"array"}
	declared, numbers := "    Change change = {.apply = apply_"+f.name+"};\n", 0
	given := f.parameters[1 : len(f.parameters)-1]
	for i := 0; i < len(given); i++ {
		p, at := given[i], len(reads)
		switch {
		case p.kind == "hamr_array *":
			reads = append(reads, fmt.Sprintf("change_other(&change, arguments[%d]) < 0", at))
			passed = append(passed, "change->other ? &change->other->array : NULL")
			typed = append(typed, p.name+": Array"+map[bool]string{true: " | None"}[p.name == "value"])
		case p.kind == "int32_t" && i+1 < len(given) && given[i+1] == parameter{"shape", "const int64_t *"}:
			i++
			reads = append(reads, fmt.Sprintf("change_shape(&change, arguments[%d]) < 0", at))
			passed = append(passed, "change->ndim", "change->shape")
			typed = append(typed, "shape: tuple[int, ...]")
		case p.kind == "int64_t":
			reads = append(reads, fmt.Sprintf("change_number(&change.numbers[%d], arguments[%d]) < 0", numbers, at))
			passed = append(passed, fmt.Sprintf("change->numbers[%d]", numbers))
			typed = append(typed, p.name+": int")
			numbers++
		case p.kind == "int32_t":
			declared += "    int32_t " + p.name + ";\n"
			reads = append(reads, fmt.Sprintf("read_int32(arguments[%d], \"%s\", &%s) < 0", at, p.name, p.name))
			passed = append(passed, fmt.Sprintf("(int32_t)change->numbers[%d]", numbers))
			typed = append(typed, p.name+": int")
			numbers++
		default:
			return fmt.Errorf("%s: Python gives no %s", p.name, p.kind)
		}
	}
	head := "static hamr_error *apply_" + f.name + "("
	fmt.Fprintf(&u.functions, `
%[3]sconst hamr_functions *functions, Change *change, hamr_array *array,
%[4]shamr_array *becomes) {
    (void)change;
    return functions->%[1]s(%[2]s);
}
`, f.name, strings.Join(append(passed, "becomes"), ", "), head, strings.Repeat(" ", len(head)))
	u.add(f, typed, "None", declared, reads, narrow(given)+"    return change_make(arguments[0], &change);\n")
	return nil
}

// narrow keeps numbers of 32 bits where those of a change are.
func narrow(given []parameter) (text string) {
	numbers := 0
	for i, p := range given {
		if p.kind == "int32_t" && (i+1 == len(given) || given[i+1].kind != "const int64_t *") {
			text += fmt.Sprintf("    change.numbers[%d] = %s;\n", numbers, p.name)
			numbers++
		} else if p.kind == "int64_t" {
			numbers++
		}
	}
	return text
}

// add is a function that reads its arguments, each of which may fail, and then ends.
func (u *unit) add(f function, typed []string, result, declared string, reads []string, end string) {
	fmt.Fprintf(&u.functions, `
static PyObject *%s(PyObject *module, PyObject *const *arguments, Py_ssize_t n) {
%s    (void)module;
    (void)arguments;
    if (arity(n, %d, "%s") < 0 ||
        %s)
        return NULL;
%s}
`, f.name, declared, len(typed), f.name, strings.Join(reads, " ||\n        "), end)
	u.list(f.name, f, typed, result)
}

// list has Python call a function by a name.
func (u *unit) list(name string, f function, typed []string, result string) {
	var shown []string
	for _, one := range typed {
		one, _, _ = strings.Cut(one, ":")
		shown = append(shown, one)
	}
	text := fmt.Sprintf("%s(%s)", name, strings.Join(shown, ", "))
	if says := plain(f.comment); says != "" {
		text += ": " + strings.TrimSuffix(says, ".")
	}
	fmt.Fprintf(&u.methods, "    {\"%s\", FAST(%s), METH_FASTCALL, %q},\n", name, f.name, text+".")
	if len(typed) > 0 {
		typed = append(typed, "/")
	}
	all := strings.Join(typed, ", ")
	line := fmt.Sprintf("def %s(%s) -> %s: ...\n", name, all, result)
	if len(line) > 101 { // as ruff lays it out
		line = fmt.Sprintf("def %s(\n    %s\n) -> %s: ...\n", name, all, result)
	}
	u.stubs.WriteString(line)
}

// setter is a call of the store's that sets nothing: the letters of what Python gives it, for store_call_read, and what
// it is given. There is one of each kind at most.
func setter(f function) (letters string, arguments, typed []string, ok bool) {
	if f.result != "hamr_error *" || len(f.parameters) == 0 || f.parameters[0].name != "how" {
		return "", nil, nil, false
	}
	for _, p := range f.parameters[1:] {
		how, known := map[string][3]string{
			"uint64_t": {"t", "call->token", "Owned | int"}, "const hamr_store_id *": {"i", "&call->id", "Any"},
			"hamr_store_text": {"s", "call->text", "str"}, "int32_t": {"o", "call->on", "bool"},
			"int64_t": {"n", "call->number", "int"},
		}[p.kind]
		if !known || strings.Contains(letters, how[0]) || p.name == "n" { // that of a list
			return "", nil, nil, false
		}
		letters += how[0]
		arguments = append(arguments, how[1])
		typed = append(typed, p.name+": "+how[2])
	}
	return letters, arguments, typed, true
}
