// Command pythonsymbols checks that a library loads in programs without Python: what it needs of
// Python's functions is weak and looked for at its first call, and it needs no data of Python's. The
// addresses of other symbols would be those of the moment at which it was loaded.
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
	breaches := check(symbols)
	for _, tag := range []elf.DynTag{elf.DT_FLAGS, elf.DT_FLAGS_1, elf.DT_BIND_NOW} {
		values, err := file.DynValue(tag)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		breaches = append(breaches, checkBinding(tag, values)...)
	}
	if len(breaches) > 0 {
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

// checkBinding returns what is wrong with an entry of the dynamic section: none may have all functions
// bound when the library is loaded.
func checkBinding(tag elf.DynTag, values []uint64) (breaches []string) {
	for _, value := range values {
		now := tag == elf.DT_BIND_NOW ||
			tag == elf.DT_FLAGS && elf.DynFlag(value)&elf.DF_BIND_NOW != 0 ||
			tag == elf.DT_FLAGS_1 && elf.DynFlag1(value)&elf.DF_1_NOW != 0
		if now {
			breaches = append(breaches, tag.String()+" binds all functions at once")
		}
	}
	return breaches
}
