package main

import (
	"fmt"
	"slices"
	"strings"
)

// byHand are functions of hamr.h that do more than call the table's entry.
var byHand = []string{"last_error", "last_failure", "library_version"}

// publicName is how C programs call an entry. Those of the store are told by the types of their parameters: sharing
// without a server is in the same table.
func publicName(t table, f function) string {
	of := func(p parameter) bool {
		kind := strings.Trim(strings.TrimPrefix(p.kind, "const "), " *")
		return kind == "hamr_store" || kind == "hamr_store_server" || kind == "hamr_store_builder" ||
			kind == "hamr_store_group"
	}
	if t.name == "hamr_store_table" && slices.ContainsFunc(f.parameters, of) {
		return "hamr_store_" + strings.TrimSuffix(f.name, "_object") // delete is a word of C++
	}
	return "hamr_" + f.name
}

// bodyName is the function of package capi that an entry is.
func bodyName(t table, f function) string {
	return "capi_" + strings.TrimPrefix(publicName(t, f), "hamr_")
}

// publicCalls are the functions that C programs call; with is the macro that finds the table with an entry.
func publicCalls(t table, of, with string) string {
	var b strings.Builder
	b.WriteString("/* " + mark(of) + " */\n")
	for _, f := range t.entries {
		if slices.Contains(byHand, f.name) {
			continue
		}
		head := "static inline " + join(f.result, publicName(t, f)) + "("
		fmt.Fprintf(&b, "\n%s\n", wrap(head+declare(f.parameters)+") {", len(head)))
		call := fmt.Sprintf("table->%s(%s);", f.name, names(f.parameters))
		fmt.Fprintf(&b, "    const %s *table = %s(%s);\n", t.name, with, f.name)
		if f.result == "void" {
			fmt.Fprintf(&b, "    if (table) %s\n}\n", call)
			continue
		}
		without := "HAMR_ERROR_LIBRARY"
		switch {
		case f.result == "void *" || f.result == "const void *":
			without = "hamr_no_pointer()"
		case strings.HasSuffix(f.result, "*"):
			without = "(" + f.result + ")hamr_no_pointer()"
		case f.result == "int32_t":
			without = "0"
		case f.result != "hamr_status":
			fmt.Fprintf(&b, "    %s none;\n    memset(&none, 0, sizeof none);\n", f.result)
			without = "none"
		}
		fmt.Fprintf(&b, "    if (!table) return %s;\n    return %s\n}\n", without, call)
	}
	return b.String()
}

// prototypes are those of the functions of package capi.
func prototypes(tables ...table) string {
	var b strings.Builder
	b.WriteString("/* " + mark("include/hamr/interface.h and store_interface.h") + " */\n")
	b.WriteString("#ifndef HAMR_CAPI_ENTRIES_H\n#define HAMR_CAPI_ENTRIES_H\n\n#include \"hamr/store_interface.h\"\n\n")
	b.WriteString("extern const hamr_table capi_table;\nextern const hamr_store_table capi_store_table;\n\n")
	for _, t := range tables {
		for _, f := range t.entries {
			head := join(f.result, bodyName(t, f)) + "("
			b.WriteString(wrap(head+declare(f.parameters)+");", len(head)) + "\n")
		}
	}
	b.WriteString("\n#endif\n")
	return b.String()
}

// tables are the tables of package capi.
func tables(tables ...table) string {
	var b strings.Builder
	b.WriteString("/* " + mark("include/hamr/interface.h and store_interface.h") + " */\n#include \"entries.h\"\n")
	for _, t := range tables {
		version, is := "HAMR_TABLE_VERSION", "capi_table"
		if t.name == "hamr_store_table" {
			version, is = "HAMR_STORE_VERSION", "capi_store_table"
		}
		fmt.Fprintf(&b, "\nconst %s %s = {\n    .version = %s,\n    .size = sizeof(%s),\n", t.name, is, version, t.name)
		for _, f := range t.entries {
			fmt.Fprintf(&b, "    .%s = %s,\n", f.name, bodyName(t, f))
		}
		b.WriteString("};\n")
	}
	return b.String()
}
