package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

const pythonRoot = "python/hamr"

// pythonRules say what each part of the Python package may import of it, itself
// and the C extension aside. A part is a folder or module of the package, "" its
// __init__. Below stand the floors, above them what users see.
var pythonRules = []rule{
	{"_facade", nil}, // generated from what gopy exports
	{"_stored", nil},
	{"_array", nil},
	{"_calls", []string{"_array", "_stored"}},
	{"_native", []string{"_array", "_calls", "_facade", "_stored"}},
	{"_base", []string{"_facade"}},
	{"_protocols", []string{"_base"}},
	{"_buffer", []string{"_base", "_protocols"}},
	{"_diagnostics", []string{"_base"}},
	{"_upstream", []string{"_base", "_protocols", "_buffer"}},
	{"dask", []string{"_base", "_buffer"}},
	{"hetero", []string{"_base", "_buffer"}},
	{"pygpu", []string{"_base", "_protocols", "_buffer"}},
	{"allocators", []string{"_base"}},
	{"store", []string{"_base", "_buffer"}},
	{"pygpu", []string{"_base", "_protocols", "_buffer"}},
	{"", []string{"_base", "_protocols", "_buffer", "_diagnostics", "_upstream"}},
	// Programs, which use the package as everybody does.
	{"_benchmark", []string{"", "_base", "allocators", "hetero", "pygpu", "store"}},
	{"_tuning", []string{"", "_base"}},
	{"cli", []string{"", "_base", "_diagnostics", "_benchmark", "_tuning", "store"}},
	{"__main__", []string{"cli"}},
}

// extension is what every part may import: it is built from C.
const extension = "_native"

// pythonModule is a module of the package, named from its root: "" is hamr
// itself, "_base.stream" hamr._base.stream.
type pythonModule struct {
	name, file string
	isPackage  bool
	imports    map[string]bool
	defines    map[string]bool // functions, classes and variables
	exports    map[string]bool // what it defines, imports and lists, modules aside
}

// checkPython returns the breaches of the package's files, which are given by
// their names from the root of the tree.
func checkPython(files map[string][]byte) (breaches []string) {
	modules := map[string]*pythonModule{}
	for file := range files {
		module := &pythonModule{file: file, name: moduleName(file)}
		module.isPackage = strings.HasPrefix(path.Base(file), "__init__.")
		modules[module.name] = module
	}
	names := sortedKeys(modules)
	for _, name := range names {
		modules[name].read(string(files[modules[name].file]), modules)
	}
	for _, name := range names {
		breaches = append(breaches, modules[name].arrows(modules)...)
		breaches = append(breaches, modules[name].names(modules)...)
	}
	return append(breaches, circles(modules)...)
}

func moduleName(file string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(file, pythonRoot+"/"), path.Ext(file))
	if name == "__init__" {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSuffix(name, "/__init__"), "/", ".")
}

func part(module string) string {
	first, _, _ := strings.Cut(module, ".")
	return first
}

// shown is a module's full name.
func shown(module string) string {
	return strings.TrimSuffix("hamr."+module, ".")
}

func join(module, name string) string {
	return strings.Trim(module+"."+name, ".")
}

func (m *pythonModule) packageName() string {
	if m.isPackage {
		return m.name
	}
	at := strings.LastIndex(m.name, ".")
	return m.name[:max(at, 0)]
}

var (
	fromImport   = regexp.MustCompile(`^from\s*(\.*)\s*([\w.]*)\s+import\b\s*(.*)$`)
	plainImport  = regexp.MustCompile(`^import\s+(.*)$`)
	definition   = regexp.MustCompile(`^(?:async\s+)?(?:def|class)\s+(\w+)`)
	assignment   = regexp.MustCompile(`^(\w+)\s*=[^=]`)
	importsLate  = regexp.MustCompile(`\b(?:import_module|__import__)\s*\(`)
	relativeLate = regexp.MustCompile(`\bimport_module\s*\(.*,.*\b(?:__package__|__name__)\s*\)`)
)

// read finds out what a module imports and defines.
func (m *pythonModule) read(text string, modules map[string]*pythonModule) {
	m.imports, m.defines, m.exports = map[string]bool{}, map[string]bool{}, map[string]bool{}
	late, relative := false, false
	var literals []string
	for _, s := range statements(text) {
		literals = append(literals, s.literals...)
		late = late || importsLate.MatchString(s.text)
		relative = relative || relativeLate.MatchString(s.text)
		if found := fromImport.FindStringSubmatch(s.text); found != nil {
			m.readFrom(len(found[1]), found[2], found[3], modules)
		} else if found := plainImport.FindStringSubmatch(s.text); found != nil {
			for _, item := range strings.Split(found[1], ",") {
				m.point(absolute(strings.Fields(item + " _")[0]))
			}
		} else if s.indent > 0 {
			continue
		} else if found := definition.FindStringSubmatch(s.text); found != nil {
			m.defines[found[1]] = true
		} else if found := assignment.FindStringSubmatch(s.text); found != nil {
			m.defines[found[1]] = true
			if found[1] == "__all__" {
				for _, name := range s.literals {
					m.exports[name] = true
				}
			}
		}
	}
	for name := range m.defines {
		m.exports[name] = true
	}
	if !late {
		return
	}
	// Modules that are imported by name: in a call, or in a table that a call reads.
	for _, literal := range literals {
		if target, ours := strings.CutPrefix(literal, "hamr."); ours && modules[target] != nil {
			m.imports[target] = true
		}
		local := strings.TrimLeft(literal, ".")
		if target := join(m.packageName(), local); relative && local != "" && modules[target] != nil {
			m.imports[target] = true
		}
	}
}

// readFrom notes a "from" statement: its leading dots, its module and its names.
func (m *pythonModule) readFrom(dots int, from, list string, modules map[string]*pythonModule) {
	source, ours := absolute(from)
	if dots > 0 {
		elements := strings.Split(m.packageName(), ".")
		ours = dots-1 <= len(elements)
		source = join(strings.Join(elements[:max(len(elements)-dots+1, 0)], "."), from)
	}
	for _, item := range strings.Split(strings.Trim(list, "() "), ",") {
		words := strings.Fields(item)
		if len(words) == 0 {
			continue
		}
		if ours && (modules[join(source, words[0])] != nil || join(source, words[0]) == extension) {
			m.point(join(source, words[0]), true)
			continue
		}
		m.exports[words[len(words)-1]] = true
		m.point(source, ours)
	}
}

// absolute is the name from the package's root of a module of it.
func absolute(name string) (module string, ours bool) {
	if name == "hamr" {
		return "", true
	}
	return strings.CutPrefix(name, "hamr.")
}

func (m *pythonModule) point(target string, ours bool) {
	if ours {
		m.imports[target] = true
	}
}

// arrows returns a breach for each import that the module's part may not make.
func (m *pythonModule) arrows(modules map[string]*pythonModule) (breaches []string) {
	own := part(m.name)
	at := slices.IndexFunc(pythonRules, func(r rule) bool { return r.folder == own })
	if at < 0 {
		return []string{fmt.Sprintf("%s: no rule says what %s may import", m.file, shown(own))}
	}
	for _, target := range sortedKeys(m.imports) {
		other := part(target)
		if other != own && other != extension && !slices.Contains(pythonRules[at].imports, other) {
			breaches = append(breaches, fmt.Sprintf("%s: %s may not import %s", m.file, shown(own), shown(target)))
		}
	}
	return breaches
}

// names returns a breach if a module is named like what it defines, or like what
// its package exports: then a name stands for one or the other, whatever was
// imported last.
func (m *pythonModule) names(modules map[string]*pythonModule) (breaches []string) {
	if m.name == "" {
		return nil
	}
	own := m.name[strings.LastIndex(m.name, ".")+1:]
	if m.defines[own] {
		breaches = append(breaches, fmt.Sprintf("%s: the module is named like %s, which it defines", m.file, own))
	}
	parent := strings.TrimSuffix(strings.TrimSuffix(m.name, own), ".")
	if above := modules[parent]; above != nil && above.exports[own] {
		breaches = append(breaches, fmt.Sprintf("%s: the module is named like %s, which %s exports",
			m.file, own, shown(parent)))
	}
	return breaches
}

// circles returns a breach for each set of modules that import one another.
func circles(modules map[string]*pythonModule) (breaches []string) {
	done := map[string]bool{}
	for _, name := range sortedKeys(modules) {
		if done[name] {
			continue
		}
		circle := pathBetween(modules, name, name)
		for _, member := range circle {
			done[member] = true
		}
		if circle == nil {
			continue
		}
		for i := range circle {
			circle[i] = shown(circle[i])
		}
		breaches = append(breaches, fmt.Sprintf("%s: a circle of imports: %s", modules[name].file,
			strings.Join(circle, " -> ")))
	}
	return breaches
}

// pathBetween is the shortest way of one import or more from one module to
// another, both included; nil if there is none.
func pathBetween(modules map[string]*pythonModule, from, to string) []string {
	before := map[string]string{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range sortedKeys(modules[queue[0]].imports) {
			if _, seen := before[next]; seen || modules[next] == nil {
				continue
			}
			before[next] = queue[0]
			queue = append(queue, next)
			if next != to {
				continue
			}
			way := []string{to}
			for at := before[to]; at != from; at = before[at] {
				way = append(way, at)
			}
			way = append(way, from)
			slices.Reverse(way)
			return way
		}
	}
	return nil
}

func sortedKeys[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
