package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// walk prints how many calls of how many functions and files one b[...] = array makes in Go. A test of the bridge makes
// two, and then three, while the compiler counts how often each block of code runs: one is the difference.
func walk(out io.Writer, root string) error {
	folder, err := os.MkdirTemp("", "hamr-house")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var profiles [2]map[string]map[string]int
	for i, times := range []string{"2", "3"} {
		profile := filepath.Join(folder, times)
		_, err := command(root, []string{"HAMR_HOUSE_WALK=" + times}, "go", "test", "-count=1", "-covermode=atomic",
			"-coverpkg=./arrayiface/...,./backends/...,./gobuffer/...,./pyhamr/...", "-coverprofile="+profile,
			"-run=^TestWalkOfAnAssignment$", "./pyhamr/internal/bridge")
		if err != nil {
			return err
		}
		text, err := os.ReadFile(profile)
		if err != nil {
			return err
		}
		profiles[i] = blocks(text)
	}
	called, err := calls(os.DirFS(root), profiles[0], profiles[1])
	if err != nil {
		return err
	}
	sum, functions := 0, 0
	for _, file := range slices.Sorted(maps.Keys(called)) {
		fmt.Fprintln(out, file)
		for _, f := range called[file] {
			fmt.Fprintf(out, "  %3d  %s\n", f.times, f.name)
			sum += f.times
			functions++
		}
	}
	fmt.Fprintf(out, "b[...] = array: %d calls of %d functions in %d files\n", sum, functions, len(called))
	return nil
}

// command returns what a command prints; an error has that, too, and what went wrong.
func command(root string, environment []string, name string, arguments ...string) ([]byte, error) {
	c := exec.Command(name, arguments...)
	c.Dir, c.Env = root, append(os.Environ(), environment...)
	var failed bytes.Buffer
	c.Stderr = &failed
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", c, err, text, &failed)
	}
	return text, nil
}

// called is a function and how often it was.
type called struct {
	name  string
	times int
}

// blocks reads how often each block of code ran, by its file and where it begins.
func blocks(profile []byte) map[string]map[string]int {
	found := map[string]map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(profile)); lines.Scan(); {
		name, rest, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "hamr/"), ":")
		begin, counts, _ := strings.Cut(rest, ",")
		var end string
		var statements, times int
		if n, _ := fmt.Sscan(counts, &end, &statements, &times); n < 3 {
			continue
		}
		if found[name] == nil {
			found[name] = map[string]int{}
		}
		found[name][begin] += times
	}
	return found
}

// calls tells how much more often each function was entered: as often as the first block in its body.
func calls(tree fs.FS, before, after map[string]map[string]int) (map[string][]called, error) {
	found := map[string][]called{}
	for name, ran := range after {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			at := set.Position(f.Body.Lbrace)
			begin := fmt.Sprintf("%d.%d", at.Line, at.Column)
			if times := ran[begin] - before[name][begin]; times > 0 {
				found[name] = append(found[name], called{f.Name.Name, times})
			}
		}
	}
	return found, nil
}
