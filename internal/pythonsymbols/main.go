// Command pythonsymbols checks that a library loads in programs without Python: what it needs of
// Python's functions is weak, and it needs no data of Python's, whose addresses would be those of the
// moment at which it was loaded.
//
//	pythonsymbols FILE
package main

import (
	"debug/elf"
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pythonsymbols FILE")
		os.Exit(2)
	}
	file, err := elf.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if breaches := check(symbols); len(breaches) > 0 {
		fmt.Fprintf(os.Stderr, "%s does not load without Python: %s\n", os.Args[1], strings.Join(breaches, ", "))
		os.Exit(1)
	}
}

// check returns what is wrong with each of Python's symbols.
func check(symbols []elf.Symbol) (breaches []string) {
	for _, s := range symbols {
		name := strings.TrimPrefix(s.Name, "_")
		switch {
		case s.Section != elf.SHN_UNDEF || !strings.HasPrefix(name, "Py"):
		case strings.HasPrefix(name, "PyExc_") || strings.HasSuffix(name, "Struct") || strings.HasSuffix(name, "_Type"):
			breaches = append(breaches, s.Name+" is data")
		case elf.ST_BIND(s.Info) != elf.STB_WEAK:
			breaches = append(breaches, s.Name+" is not weak")
		}
	}
	return breaches
}
