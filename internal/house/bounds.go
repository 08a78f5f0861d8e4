package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
)

// goalOfCircles is how many files may form a circle in a package for which nothing else is said.
const goalOfCircles = 6

// circleBounds are of packages that are not there yet. A bound only ever becomes less.
var circleBounds = map[string]int{
	"pyhamr/internal/bridge": 14,
}

// The other bounds: what is there, and the goals. Each function is to cross one way.
const (
	mostWays                     = 205 // with the store's, which had been a table of their own that nothing counted
	mostReplies, goalReplies     = 25, 0
	mostCrossing, goalCrossing   = 24050, 18000
	mostProduct, goalProduct     = 110300, 93000
	mostLong, goalLong           = 943, 0
	mostLongFiles, goalLongFiles = 11, 0
)

// unbounded is the bound and the goal of what is only told.
const unbounded = -1

// row is one figure of the table.
type row struct {
	what string
	is   int
	most int
	goal int
}

// figures are the rows of the table.
func figures(tree fs.FS, packages []pkg) ([]row, error) {
	var rows []row
	others := row{"files in a circle: any other package", 0, goalOfCircles, goalOfCircles}
	for _, p := range packages {
		if bound, known := circleBounds[p.path]; known {
			what := fmt.Sprintf("files in a circle: %s, of %d", p.path, len(p.files))
			rows = append(rows, row{what, p.ties.largest(), bound, goalOfCircles})
		} else if largest := p.ties.largest(); largest > others.is {
			others.what = fmt.Sprintf("files in a circle: any other package, as %s", p.path)
			others.is = largest
		}
	}
	rows = append(rows, others)
	c, err := ways(tree)
	if err != nil {
		return nil, err
	}
	s, err := measure(tree)
	if err != nil {
		return nil, err
	}
	rows = append(rows,
		row{"ways from Python into the core", c.table + c.gopy, mostWays, unbounded},
		row{"  functions of the table that C code calls", c.table, unbounded, unbounded},
		row{"  functions that gopy exports", c.gopy, unbounded, unbounded},
		row{"  of these, those whose reply is text", c.replies, mostReplies, goalReplies},
		row{"lines of the product, handwritten and without tests", s.all(), mostProduct, goalProduct},
	)
	for _, a := range areas {
		r := row{"  of " + a.name, s.lines[a.name], unbounded, unbounded}
		if a.name == crossingArea {
			r.most, r.goal = mostCrossing, goalCrossing
		}
		rows = append(rows, r)
	}
	return append(rows,
		row{"lines of Go and C that pass 120 columns", s.long, mostLong, goalLong},
		row{"files of more than 400 lines", s.files, mostLongFiles, goalLongFiles},
	), nil
}

func absolute(root string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(root)
}
