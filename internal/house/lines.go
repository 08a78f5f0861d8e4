package main

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const crossingArea = "the crossing: pyhamr, python/hamr/native"

// areas are the parts of the product whose lines are counted, each with the folders that it stands in; the longest
// folder that holds a file has it.
var areas = []struct {
	name    string
	folders []string
}{
	{"the core", []string{"gobuffer"}},
	{crossingArea, []string{"pyhamr", "python/hamr/native"}},
	{"backends", []string{"backends", "arrayiface"}},
	{"scheduling", []string{"hetero"}},
	{"the store", []string{"store"}},
	{"Python", []string{"python"}},
	{"headers", []string{"include"}},
	{"the rest", []string{"internal", "cmake"}},
}

// notProduct are folders of tests, and of what only developers run.
var notProduct = []string{"backends/backendtest", "backends/trial", "internal/lint", "internal/house",
	"python/hamr/_gopy"}

var handwritten = []string{
	".go", ".c", ".h", ".hpp", ".cpp", ".py", ".pyi", ".pxd", ".pyx", ".f90", ".cu", ".i", ".s", ".cmake",
}

var generated = regexp.MustCompile(`(?m)^(//|#|/\*|!|\s\*).*(Code generated|Generated|generated) by .*`)

// mutationMark begins what tells tests to change the code: no line of the product.
var mutationMark = []byte("//mutate:")

// most is how many columns a line of Go and C has at most.
const most = 120

// sizes are the lines of the product that people write, and how many of Go and C are too long.
type sizes struct {
	lines map[string]int // by area
	long  int
	files int // of more lines than a reader holds in the head
}

// measure counts them in the tree of the module.
func measure(tree fs.FS) (sizes, error) {
	s := sizes{lines: map[string]int{}}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			hidden := name != "." && strings.HasPrefix(entry.Name(), ".")
			if hidden || entry.Name() == "testdata" || slices.Contains(notProduct, name) {
				return fs.SkipDir
			}
			return nil
		}
		area := areaOf(name)
		if area == "" || strings.HasSuffix(name, "_test.go") || !slices.Contains(handwritten, path.Ext(name)) {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil || generated.Match(text[:min(len(text), 600)]) {
			return err
		}
		lines := bytes.Count(text, []byte("\n")) - bytes.Count(text, mutationMark)
		s.lines[area] += lines
		if lines > 400 {
			s.files++
		}
		if slices.Contains([]string{".go", ".c", ".h"}, path.Ext(name)) {
			s.long += tooLong(text)
		}
		return nil
	})
	return s, err
}

func areaOf(name string) (area string) {
	longest := 0
	for _, a := range areas {
		for _, folder := range a.folders {
			if strings.HasPrefix(name, folder+"/") && len(folder) > longest {
				area, longest = a.name, len(folder)
			}
		}
	}
	return area
}

func tooLong(text []byte) (count int) {
	for line := range bytes.Lines(text) {
		if utf8.RuneCount(bytes.TrimRight(line, "\n")) > most {
			count++
		}
	}
	return count
}

// all is the lines of all areas.
func (s sizes) all() (sum int) {
	for _, lines := range s.lines {
		sum += lines
	}
	return sum
}
