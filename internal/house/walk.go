package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// walk prints how many calls of how many functions and files one b[...] = array makes in Go: a test of the bridge makes
// one while the compiler's counters of coverage run.
func walk(out io.Writer, root string) error {
	folder, err := os.MkdirTemp("", "hamr-house")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	err = command(root, []string{"HAMR_HOUSE_WALK=" + folder}, "go", "test", "-count=1", "-covermode=atomic",
		"-coverpkg=./arrayiface/...,./backends/...,./gobuffer/...,./pyhamr/...", "-run=^TestWalkOfAnAssignment$", "./pyhamr/internal/bridge")
	if err != nil {
		return err
	}
	counters := filepath.Join(folder, "counters")
	if err := command(root, nil, "go", "tool", "covdata", "textfmt", "-i="+folder, "-o="+counters); err != nil {
		return err
	}
	text, err := os.ReadFile(counters)
	if err != nil {
		return err
	}
	called, err := calls(os.DirFS(root).(readFS), text)
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

func command(root string, environment []string, name string, arguments ...string) error {
	c := exec.Command(name, arguments...)
	c.Dir, c.Env = root, append(os.Environ(), environment...)
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, text)
	}
	return nil
}

type readFS interface {
	ReadFile(name string) ([]byte, error)
}

// called is a function and how often it was.
type called struct {
	name  string
	times int
}

// calls reads how often each function was entered: as often as the first block in its body.
func calls(tree readFS, profile []byte) (map[string][]called, error) {
	first := map[string]map[int]int{} // the times by file and line of a block's beginning
	for lines := bufio.NewScanner(bytes.NewReader(profile)); lines.Scan(); {
		name, rest, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "hamr/"), ":")
		var line, column, endLine, endColumn, statements, times int
		if n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &line, &column, &endLine, &endColumn, &statements, &times); !ok || n < 6 || times == 0 {
			continue
		}
		if first[name] == nil {
			first[name] = map[int]int{}
		}
		first[name][line<<16|column] = times
	}
	found := map[string][]called{}
	for name, blocks := range first {
		text, err := tree.ReadFile(name)
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
			if times := blocks[at.Line<<16|at.Column]; times > 0 {
				found[name] = append(found[name], called{f.Name.Name, times})
			}
		}
	}
	return found, nil
}
