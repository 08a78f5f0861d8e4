package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	nativeRoot = "python/hamr/native"
	// nativePython stands for Python's own header, whose names are not known here.
	nativePython = "base/python.h"
)

// nativeFloors are the folders of the C extension, lowest first. A file may use
// what is declared on its own floor and on those below.
var nativeFloors = []string{
	"plain", "base", "core", "memory", "array", "store", "scheduling", "protocols", "kernels", "surface",
}

// nativeFile is a source or a header. A header and the source of the same name
// are one unit: what the header declares, the source defines.
type nativeFile struct {
	name     string // from nativeRoot
	unit     string // name without its extension
	includes []string
	external []string // what other files may use, in order
	uses     map[string]bool
}

func (f *nativeFile) isHeader() bool { return path.Ext(f.name) == ".h" }

// checkNative returns one line for each breach among the sources of the C
// extension: a file on no floor, the use of a floor above, a circle of files, an
// external name that is not in the header of its file, and a header that is not
// included where its names are used, or is where none is.
func checkNative(tree fs.FS) ([]string, error) {
	files, err := readNative(tree)
	if err != nil {
		return nil, err
	}
	var breaches []string
	report := func(format string, arguments ...any) { breaches = append(breaches, fmt.Sprintf(format, arguments...)) }

	byName, owner := map[string]*nativeFile{}, map[string]*nativeFile{}
	for _, file := range files {
		byName[file.name] = file
		if !file.isHeader() {
			continue
		}
		for _, symbol := range file.external {
			if other := owner[symbol]; other != nil && other != file {
				report("%s: %s is declared in %s, too", file.name, symbol, other.name)
			}
			owner[symbol] = file
		}
	}
	arrows := map[string]map[string]bool{} // by unit
	for _, file := range files {
		floor := nativeFloor(file.name)
		if floor < 0 {
			report("%s: its folder is no floor: accepted are %s", file.name, strings.Join(nativeFloors, ", "))
			continue
		}
		own := byName[file.unit+".h"]
		if !file.isHeader() {
			if own != nil && !slices.Contains(file.includes, own.name) {
				report("%s: does not include its own %s", file.name, own.name)
			}
			for _, symbol := range file.external {
				if (owner[symbol] == nil || owner[symbol] != own) && !strings.HasPrefix(symbol, "PyInit_") {
					report("%s: %s is neither static nor declared in %s.h", file.name, symbol, file.unit)
				}
			}
		}
		used := map[*nativeFile]string{} // headers, by one of the names
		for _, symbol := range slices.Sorted(maps.Keys(file.uses)) {
			if header := owner[symbol]; header != nil && header.unit != file.unit && used[header] == "" {
				used[header] = symbol
			}
		}
		for _, included := range file.includes {
			header := byName[included]
			if header != nil && header != own && used[header] == "" && included != nativePython {
				report("%s: includes %s and uses nothing of it", file.name, included)
			}
		}
		if arrows[file.unit] == nil {
			arrows[file.unit] = map[string]bool{}
		}
		for _, header := range files {
			symbol := used[header]
			if symbol == "" {
				continue
			}
			arrows[file.unit][header.unit] = true
			if !slices.Contains(file.includes, header.name) {
				report("%s: uses %s and does not include %s", file.name, symbol, header.name)
			}
			if nativeFloor(header.name) > floor {
				report("%s: uses %s of %s, a floor above", file.name, symbol, header.name)
			}
		}
	}
	return append(breaches, nativeCircles(arrows)...), nil
}

// nativeFloor is the number of a file's floor, or -1.
func nativeFloor(name string) int { return slices.Index(nativeFloors, path.Dir(name)) }

// nativeCircles names the shortest circle of the first unit in each group of
// units that use one another.
func nativeCircles(arrows map[string]map[string]bool) (breaches []string) {
	seen := map[string]bool{}
	for _, start := range slices.Sorted(maps.Keys(arrows)) {
		back := nativeReach(arrows, start)
		if seen[start] || back[start] == "" {
			continue
		}
		circle := []string{start}
		for unit := back[start]; unit != start; unit = back[unit] {
			circle = append(circle, unit)
		}
		circle = append(circle, start)
		slices.Reverse(circle)
		breaches = append(breaches, "a circle: "+strings.Join(circle, " uses "))
		for unit := range back {
			seen[unit] = seen[unit] || nativeReach(arrows, unit)[start] != ""
		}
	}
	return breaches
}

// nativeReach gives for each unit that start uses, at however many removes, the
// one before it on the shortest way.
func nativeReach(arrows map[string]map[string]bool, start string) map[string]string {
	before := map[string]string{}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		for _, next := range slices.Sorted(maps.Keys(arrows[queue[0]])) {
			if before[next] == "" {
				before[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return before
}

func readNative(tree fs.FS) (files []*nativeFile, err error) {
	root, err := fs.Sub(tree, nativeRoot)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a tree without the extension
		}
		if err != nil || entry.IsDir() || !slices.Contains([]string{".c", ".h"}, path.Ext(name)) {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files = append(files, parseNative(name, string(text)))
		return nil
	})
	for _, file := range files {
		for i, included := range file.includes {
			// As the compiler looks: beside the file, then from the root.
			beside := path.Join(path.Dir(file.name), included)
			if slices.ContainsFunc(files, func(other *nativeFile) bool { return other.name == beside }) {
				file.includes[i] = beside
			}
		}
	}
	return files, err
}

var (
	nativeComments   = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)
	nativeDirectives = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*(\w+)((?:[^\n\\]|\\[^\n]|\\\n)*)$`)
	nativeTokens     = regexp.MustCompile(`[A-Za-z_]\w*|->|\.?\d[\w.]*|\.\.\.|[^\s\w]`)
	nativeName       = regexp.MustCompile(`^[A-Za-z_]\w*$`)
	nativeMacroCall  = regexp.MustCompile(`^_?[A-Z][A-Z0-9_]+$`)
)

// parseNative reads what a file includes, uses and offers, as far as it takes to
// tell which file uses which: it knows the forms that the extension is written
// in, not all of C.
func parseNative(name, text string) *nativeFile {
	file := &nativeFile{name: name, unit: strings.TrimSuffix(name, path.Ext(name)), uses: map[string]bool{}}
	text = nativeComments.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == '/' {
			return " "
		}
		return found
	})
	var macros []string
	text = nativeDirectives.ReplaceAllStringFunc(text, func(found string) string {
		parts := nativeDirectives.FindStringSubmatch(found)
		switch rest := strings.TrimSpace(parts[2]); parts[1] {
		case "include":
			if strings.HasPrefix(rest, `"`) {
				file.includes = append(file.includes, strings.Trim(rest, `"`))
			}
		case "define":
			tokens := nativeTokensOf(rest)
			if len(tokens) > 1 { // else a guard
				macros = append(macros, tokens[0])
			}
			file.addUses(tokens[1:])
		}
		return ""
	})
	tokens := nativeTokensOf(text)
	file.addUses(tokens)
	if file.isHeader() {
		file.external = macros
	}
	for len(tokens) > 0 {
		var statement []string
		statement, tokens = nextNative(tokens, macros)
		file.external = append(file.external, externalNames(statement, file.isHeader())...)
	}
	slices.Sort(file.external)
	file.external = slices.Compact(file.external)
	return file
}

func nativeTokensOf(text string) []string {
	text = nativeComments.ReplaceAllString(text, ` 0 `)
	return nativeTokens.FindAllString(strings.ReplaceAll(text, "\\\n", " "), -1)
}

// addUses counts all names but those of members.
func (f *nativeFile) addUses(tokens []string) {
	for i, token := range tokens {
		if nativeName.MatchString(token) && (i == 0 || tokens[i-1] != "." && tokens[i-1] != "->") {
			f.uses[token] = true
		}
	}
}

// nextNative splits off a declaration, or the definition of a function with its
// body. A call of a macro outside of functions is nothing.
func nextNative(tokens, macros []string) (statement, rest []string) {
	depth, inBody := 0, false
	isMacro := len(tokens) > 1 && tokens[1] == "(" && (nativeMacroCall.MatchString(tokens[0]) ||
		tokens[0] == "_Static_assert" || slices.Contains(macros, tokens[0]))
	for i, token := range tokens {
		switch token {
		case "{", "(", "[":
			if token == "{" && depth == 0 && i > 0 && tokens[i-1] == ")" && !slices.Contains(tokens[:i], "=") {
				inBody = true
			}
			depth++
		case "}", ")", "]":
			depth--
			if depth == 0 && token == ")" && isMacro {
				return nil, tokens[i+1:]
			}
			if depth == 0 && token == "}" && inBody {
				return tokens[:i+1], tokens[i+1:]
			}
		case ";":
			if depth == 0 {
				return tokens[:i+1], tokens[i+1:]
			}
		}
	}
	return tokens, nil
}

// externalNames is what a statement outside of functions gives other files to
// use: names with external linkage and, in a header, all that it declares.
func externalNames(statement []string, inHeader bool) (names []string) {
	if len(statement) < 2 {
		return nil
	}
	isType := slices.Contains([]string{"typedef", "struct", "union", "enum"}, statement[0])
	if (isType || statement[0] == "static") && !inHeader && !declaresVariable(statement) {
		return nil
	}
	isEnum := slices.Contains(statement[:2], "enum")
	depth := 0
	for i, token := range statement {
		switch token {
		case "{", "(", "[":
			depth++
		case "}", ")", "]":
			depth--
		}
		if !nativeName.MatchString(token) || i == 0 || i+1 == len(statement) {
			continue
		}
		before, next := statement[i-1], statement[i+1]
		switch {
		case depth == 0 && next == "{" && slices.Contains([]string{"struct", "union", "enum"}, before):
			names = append(names, token)
		case depth == 1 && isEnum && (before == "{" || before == ","):
			names = append(names, token)
		case depth == 0 && next == "(" && token != "__attribute__" && token != "_Atomic" && token != "typedef":
			return append(names, token)
		case depth == 1 && before == "*" && statement[i-2] == "(" && next == ")":
			return append(names, token)
		case depth == 0 && slices.Contains([]string{"[", "=", ";", ","}, next) &&
			!slices.Contains([]string{"struct", "union", "enum"}, before):
			names = append(names, token)
			if next == "=" || next == "[" {
				return names
			}
		}
	}
	return names
}

// declaresVariable tells struct Name thing; from struct Name { ... };
func declaresVariable(statement []string) bool {
	return statement[0] != "static" && statement[0] != "typedef" && len(statement) > 3 &&
		statement[len(statement)-2] != "}"
}
