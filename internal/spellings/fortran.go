package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed fortran/module.f90
var module string

const (
	inFortran  = " Fortran has it."
	procedures = "    ! The procedures.\n"
)

// fortranHeader has the C of functions that follow from the entries that Fortran has.
func fortranHeader(t table) (string, error) {
	var b strings.Builder
	b.WriteString("/* " + mark("interface.h, for hamr_fortran.c") + " */\n")
	for _, f := range t.entries {
		if !strings.Contains(f.comment, inFortran) {
			continue
		}
		var parameters, given, shown []string
		for _, p := range f.parameters {
			kind, pass, show := "const "+p.kind+" *", "*"+p.name, p.name
			switch {
			case strings.TrimPrefix(p.kind, "const ") == "hamr_buffer *":
				kind = "hamr_buffer *const *"
			case p == parameter{"device", "int32_t"}:
				pass, show = "device ? *device : HAMR_CURRENT_DEVICE", "[device]"
			case p.kind != "int32_t" && p.kind != "int64_t":
				return "", fmt.Errorf("%s of %s: %s: Fortran gives no %s by itself", f.name, t.name, p.name, p.kind)
			}
			parameters, given, shown = append(parameters, kind+p.name), append(given, pass), append(shown, show)
		}
		fmt.Fprintf(&b, "\n/* hamr_%s(%s): %s */\nFUNCTION(%s, hamr_%s(%s), %s)\n", f.name, strings.Join(shown, ", "),
			strings.Replace(plain(f.comment), inFortran, "", 1), f.name, f.name,
			strings.Join(given, ", "), strings.Join(parameters, ", "))
	}
	return b.String(), nil
}

// plain is a comment of C's on one line.
func plain(comment string) string {
	text := strings.TrimSuffix(strings.TrimPrefix(comment, "/*"), "*/")
	text = regexp.MustCompile(`\n\s*\*`).ReplaceAllString(text, " ")
	return tidy(text)
}

// procedure is a C function that Fortran calls.
type procedure struct {
	name, specific, result, text string // specific is behind hamr_fortran_
	kind                         string // what Fortran tells it from others of the name by
	parameters                   []parameter
	optional                     []string
}

var (
	announced = regexp.MustCompile(`(?s)/\* (?:([a-z]+\([a-z_0-9]+\)) )?(hamr_\w+)\(([^)]*)\):(.*?)\*/\s*` +
		`(?:FUNCTION\((\w+)(##\w+)?, |FACT\([^,]*, (\w+), |[\w ]+?\*?hamr_fortran_(\w+)\()`)
	continued = regexp.MustCompile(` *\\\n`)
	pointers  = []string{"bool", "int8", "int16", "int32", "int64", "real32", "real64", "complex32", "complex64"}
	kinds     = map[string]string{
		"bool": "logical(c_bool)", "int8": "integer(c_int8_t)", "int16": "integer(c_int16_t)", "int32": "integer(c_int32_t)",
		"int64": "integer(c_int64_t)", "real32": "real(c_float)", "real64": "real(c_double)",
		"complex32": "complex(c_float_complex)", "complex64": "complex(c_double_complex)",
	}
	imported = regexp.MustCompile(`\b(hamr_integer|hamr_buffer|hamr_handle|c_\w+)\b`)
)

// fortranModule is the module of the procedures that the sources announce in comments.
func fortranModule(sources ...string) (string, error) {
	var list []procedure
	for _, text := range sources {
		text = continued.ReplaceAllString(text, "\n")
		for _, at := range announced.FindAllStringSubmatchIndex(text, -1) {
			part := func(i int) string {
				if at[2*i] < 0 {
					return ""
				}
				return text[at[2*i]:at[2*i+1]]
			}
			p := procedure{result: part(1), name: part(2), text: plain(part(4)), specific: part(5) + part(7) + part(8)}
			shown := strings.NewReplacer("[", "", "]", "").Replace(part(3))
			if open := strings.Index(part(3), "["); open >= 0 {
				p.optional = strings.Split(strings.TrimSuffix(part(3)[open+1:], "]"), ", ")
			}
			types := "hamr_buffer *const *buffer"
			if part(7) == "" {
				types = argumentsAt(text[at[1]:], part(5) != "")
			}
			given, err := readParameters(types)
			if err != nil {
				return "", fmt.Errorf("%s: %w", p.name, err)
			}
			if p.parameters = given; names(given) != shown {
				return "", fmt.Errorf("%s: the comment has %s, the function %s", p.name, shown, names(given))
			}
			list = append(list, p.expanded(part(6))...)
		}
	}
	var b strings.Builder
	for i := 0; i < len(list); {
		end := i + 1
		for end < len(list) && list[end].name == list[i].name {
			end++
		}
		b.WriteString(interfaceOf(list[i:end]))
		i = end
	}
	return "! " + mark("hamr_fortran.c and hamr/interface.h") + "\n" +
		strings.Replace(module, procedures, strings.TrimPrefix(b.String(), "\n"), 1), nil
}

// argumentsAt are the parameters that text begins with: up to its closing bracket, and behind the call of a FUNCTION.
func argumentsAt(text string, behindCall bool) string {
	depth, begin := 0, 0
	for i, r := range text {
		switch r {
		case '(', '{':
			depth++
		case ')':
			if depth == 0 {
				return text[begin:i]
			}
			depth--
		case ',':
			if depth == 0 && behindCall {
				begin, behindCall = i+1, false
			}
		}
	}
	return ""
}

// expanded are the procedures that a macro makes of one.
func (p procedure) expanded(by string) []procedure {
	list := []string{""}
	switch by {
	case "##kind":
		list = []string{"int32", "int64"}
	case "##type":
		list = pointers
	}
	var made []procedure
	for _, kind := range list {
		one := p
		one.kind, one.specific = kind, p.specific+kind
		made = append(made, one)
	}
	return made
}

func interfaceOf(list []procedure) string {
	first := list[0]
	if len(list) == 1 && first.name == "hamr_"+first.specific {
		return "\n    interface\n" + remark(first.text, "        ") +
			first.declaration(first.name, fmt.Sprintf("bind(C, name=\"hamr_fortran_%s\")", first.specific)) +
			"    end interface\n"
	}
	text := "\n" + remark(first.text, "    ") + "    interface " + first.name + "\n"
	for _, p := range list {
		text += p.declaration("hamr_fortran_"+p.specific, "bind(C)")
	}
	return text + "    end interface " + first.name + "\n"
}

// remark is a comment of Fortran's.
func remark(text, indent string) string {
	var b strings.Builder
	line := indent + "!"
	for _, word := range strings.Fields(text) {
		if len(line)+len(word) >= columns {
			b.WriteString(line + "\n")
			line = indent + "!"
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

func (p procedure) declaration(name, binding string) string {
	var shown, lines []string
	for _, given := range p.parameters {
		shown = append(shown, given.name)
		lines = append(lines, p.typeOf(given)+" :: "+given.name+bounds[given.name])
	}
	is := "subroutine"
	if p.result != "" {
		is = "function"
		lines = append(lines, p.result+" :: "+name)
	} else if p.result == "" {
		shown = append(shown, "stat")
		lines = append(lines, "integer(hamr_integer), intent(out), optional :: stat")
	}
	var uses []string
	for _, line := range lines {
		for _, use := range imported.FindAllString(line, -1) {
			if !slices.Contains(uses, use) && use != name {
				uses = append(uses, use)
			}
		}
	}
	const deeper = "\n            "
	return fmt.Sprintf("        %s %s(%s) %s%simport :: %s%s%s\n        end %s %s\n", is, name,
		strings.Join(shown, ", "), binding, deeper, strings.Join(uses, ", "), deeper, strings.Join(lines, deeper), is, name)
}

// bounds are of arguments that are arrays.
var bounds = map[string]string{"shape": "(:)", "pointer": "(..)", "array": "(..)", "value": "(..)"}

// typeOf is a parameter's type and attributes.
func (p procedure) typeOf(given parameter) string {
	text, ok := map[string]string{
		"hamr_buffer *const *":                     "type(hamr_buffer), intent(in)",
		"hamr_buffer **":                           "type(hamr_buffer), intent(inout)",
		"hamr_handle **":                           "type(hamr_handle), intent(inout)",
		"const int32_t *":                          "integer(hamr_integer), intent(in)",
		"const int64_t *":                          "integer(c_int64_t), intent(in)",
		"int64_t *":                                "integer(c_int64_t), intent(out)",
		"CFI_cdesc_t *":                            kinds[p.kind] + ", pointer, intent(out)",
		"const CFI_cdesc_t *":                      "type(*), intent(in)",
		"void *const *":                            "type(c_ptr), intent(in)",
		"struct DLManagedTensorVersioned **":       "type(c_ptr), intent(out)",
		"struct DLManagedTensorVersioned *const *": "type(c_ptr), intent(in)",
	}[given.kind]
	if !ok {
		return "unknown: " + given.kind
	}
	switch given.name {
	case "shape":
		text = kinds[p.kind] + ", intent(in)"
	case "array":
		text += ", target"
	}
	if slices.Contains(p.optional, given.name) {
		text += ", optional"
	}
	return text
}
