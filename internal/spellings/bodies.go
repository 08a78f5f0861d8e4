package main

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

const capi = "pyhamr/internal/capi"

var defined = regexp.MustCompile(`(?m)^[^\n;/]*\b(capi_\w+)\([^;{]*\) \{`)

// writtenBodies are the functions that package capi has by hand.
func writtenBodies(tree fs.FS) (map[string]bool, error) {
	found := map[string]bool{}
	names, err := fs.Glob(tree, capi+"/*.c")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		for _, body := range defined.FindAllSubmatch(text, -1) {
			found[string(body[1])] = true
		}
	}
	return found, nil
}

// changeBodies are the functions of C programs for the core's changes, which nobody has written.
func changeBodies(tree fs.FS, public, own table) (string, error) {
	return bodies(tree, public, own, "contents.c", func(f, core function) (string, error) {
		if !isChange(core) || len(core.parameters) != len(f.parameters)+1 {
			return "", fmt.Errorf("the core's has other parameters: it needs a body by hand")
		}
		checks, gives, arguments := "", "", []string{"&array"}
		for i, p := range f.parameters[1:] {
			switch wanted := core.parameters[i+1]; {
			case p == wanted:
				arguments = append(arguments, p.name)
			case p.kind == "const hamr_buffer *" && wanted.kind == "hamr_array *":
				checks += fmt.Sprintf("    CHECK(%s, BUFFER, \"%s\");\n", p.name, p.name)
				gives += fmt.Sprintf("    hamr_array its_%s;\n    GIVE(&%s->held, &its_%s);\n", p.name, p.name, p.name)
				arguments = append(arguments, "&its_"+p.name)
			default:
				return "", fmt.Errorf("%s is no %s: it needs a body by hand", p.name, wanted.kind)
			}
		}
		return fmt.Sprintf("%s    BEGIN(buffer);\n%s    return end(buffer, capi_functions()->%s(%s), &result);\n",
			checks, gives, f.name, strings.Join(append(arguments, "&result.array"), ", ")), nil
	})
}

// storeBodies are those for the store's calls.
func storeBodies(tree fs.FS, public, own table) (string, error) {
	return bodies(tree, public, own, "stored.c", func(f, core function) (string, error) {
		if len(core.parameters) != len(f.parameters)+1 {
			return "", fmt.Errorf("the core's has other parameters: it needs a body by hand")
		}
		var results, checks string
		arguments := []string{"0", "store->numbered.token"}
		for i, p := range f.parameters[1:] {
			switch wanted := core.parameters[i+2]; {
			case p.kind == "const char *" && wanted.kind == "hamr_store_text":
				checks += fmt.Sprintf("    CHECK_NAME(%s);\n", p.name)
				arguments = append(arguments, "text_of("+p.name+")")
				continue
			case p.kind != wanted.kind:
				return "", fmt.Errorf("%s is no %s: it needs a body by hand", p.name, wanted.kind)
			case p.kind == "const hamr_store_id *":
				checks += fmt.Sprintf("    CHECK_ID(%s);\n", p.name)
			case strings.HasSuffix(p.kind, "*"):
				results += fmt.Sprintf("    CHECK_RESULT(%s, \"%s\");\n", p.name, p.name)
			}
			arguments = append(arguments, p.name)
		}
		return fmt.Sprintf("%s%s    CHECK_SESSION(store);\n    return keep(GO->%s(%s));\n", results, checks, f.name,
			strings.Join(arguments, ", ")), nil
	})
}

func bodies(tree fs.FS, public, own table, where string, make func(f, core function) (string, error)) (string, error) {
	written, err := writtenBodies(tree)
	if err != nil {
		return "", err
	}
	byName := map[string]function{}
	for _, f := range own.entries {
		byName[f.name] = f
	}
	var b strings.Builder
	b.WriteString("/* " + mark("include/hamr, for "+where) + " */\n")
	for _, f := range public.entries {
		name := bodyName(public, f)
		if written[name] {
			continue
		}
		core, ok := byName[f.name]
		if !ok {
			return "", fmt.Errorf("%s of %s: %s has no %s, and the core none that it follows from",
				f.name, public.name, capi, name)
		}
		body, err := make(f, core)
		if err != nil {
			return "", fmt.Errorf("%s of %s: %w", f.name, public.name, err)
		}
		head := join(f.result, name) + "("
		fmt.Fprintf(&b, "\n%s\n%s}\n", wrap(head+declare(f.parameters)+") {", len(head)), body)
	}
	return b.String(), nil
}
