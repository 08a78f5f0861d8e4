package main

import (
	"io/fs"
	"path/filepath"
)

// The bounds and the goals. A bound only becomes less, unless more is counted: the generator of spellings has 1,500
// lines of the product. Each function is to cross one way.
const (
	mostInCircle                 = 6 // files of a package
	mostWays                     = 226
	mostReplies, goalReplies     = 0, 0
	mostCrossing, goalCrossing   = 24561, 18000
	mostProduct, goalProduct     = 124490, 93000
	mostLong, goalLong           = 0, 0
	mostLongFiles, goalLongFiles = 7, 0
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
	circle := row{"files in a circle", 0, mostInCircle, mostInCircle}
	for _, p := range packages {
		if largest := p.ties.largest(); largest > circle.is {
			circle.what, circle.is = "files in a circle, as in "+p.path, largest
		}
	}
	rows = append(rows, circle)
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
