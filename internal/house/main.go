// Command house measures how the source is built: which files of a package form a circle, how many ways lead into the
// core, and how many lines people have written.
//
//	go run ./internal/house           the table, with the bounds
//	go run ./internal/house FOLDER    the circles of a package, and the names that its files use of each other
//	go run ./internal/house -walk     the functions of Go that one b[...] = array of Python's calls
//
// A circle is a set of files of which each one uses names of every other one, by way of others perhaps. The exit status
// is 1 where a bound is passed. "make house" runs it.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Stdout, ".", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, folders []string) error {
	root, err := absolute(root)
	if err != nil {
		return err
	}
	if slices.Equal(folders, []string{"-walk"}) {
		return walk(out, root)
	}
	packages, err := load(root)
	if err != nil {
		return err
	}
	if len(folders) > 0 {
		return show(out, packages, folders)
	}
	rows, err := figures(os.DirFS(root), packages)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-56s %8s %8s %8s\n", "", "is", "at most", "goal")
	var passed []string
	for _, r := range rows {
		fmt.Fprintf(out, "%-56s %8d %8s %8s\n", r.what, r.is, figure(r.most), figure(r.goal))
		if r.most != unbounded && r.is > r.most {
			passed = append(passed, fmt.Sprintf("%s: %d, more than %d", r.what, r.is, r.most))
		}
	}
	if len(passed) > 0 {
		return fmt.Errorf("bounds of internal/house/bounds.go are passed:\n%s", strings.Join(passed, "\n"))
	}
	return nil
}

func figure(n int) string {
	if n == unbounded {
		return ""
	}
	return strconv.Itoa(n)
}

// show prints what the files of packages have to do with each other.
func show(out io.Writer, packages []pkg, folders []string) error {
	for _, folder := range folders {
		folder = strings.Trim(strings.TrimPrefix(folder, "./"), "/")
		at := slices.IndexFunc(packages, func(p pkg) bool { return p.path == folder })
		if at < 0 {
			return fmt.Errorf("%s: no package is there", folder)
		}
		p := packages[at]
		fmt.Fprintf(out, "%s: %d files, %d ties\n", p.path, len(p.files), p.ties.count())
		for _, circle := range p.ties.circles() {
			fmt.Fprintf(out, "  circle of %d: %s\n", len(circle), strings.Join(circle, " "))
		}
		for _, from := range p.files {
			for _, to := range slices.Sorted(maps.Keys(p.ties[from])) {
				names := p.ties[from][to]
				slices.Sort(names)
				fmt.Fprintf(out, "  %s uses %s: %s\n", from, to, strings.Join(names, " "))
			}
		}
	}
	return nil
}
