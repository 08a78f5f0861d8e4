// Package main writes what follows from the tables of C functions in include/hamr: the functions that C programs call,
// the tables of the library, the functions of Go that the entries of its own table are, and those of Python's extension
// that ask for rows. Run it by
//
//	go generate ./pyhamr/internal/cabi
package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
)

// files gives the text of each file, by its path from the root of the module.
func files(tree fs.FS) (map[string]string, error) {
	var read [4]table
	for i, of := range [4][2]string{
		{"interface.h", "hamr_table"}, {"store_interface.h", "hamr_store_table"},
		{"functions.h", "hamr_functions"}, {"store_functions.h", "hamr_store_functions"},
	} {
		var err error
		if read[i], err = readTable(tree, "include/hamr/"+of[0], of[1]); err != nil {
			return nil, err
		}
	}
	public, store, own, ownStore := read[0], read[1], read[2], read[3]
	made := map[string]string{
		"include/hamr/calls.h":           publicCalls(public, "interface.h", "HAMR_TABLE_WITH"),
		"include/hamr/store_calls.h":     publicCalls(store, "store_interface.h", "HAMR_STORE_TABLE_WITH"),
		"pyhamr/internal/capi/entries.h": prototypes(public, store),
		"pyhamr/internal/capi/entries.c": tables(public, store),
		"pyhamr/internal/cabi/table.c":   ownTables(own, ownStore),
	}
	var err error
	if made["pyhamr/internal/cabi/exports.go"], err = exports(tree, own, ownStore); err != nil {
		return nil, err
	}
	if made["gobuffer/of_array.go"], err = wrappers(tree); err != nil {
		return nil, err
	}
	header, err := fortranHeader(public)
	if err != nil {
		return nil, err
	}
	shim, err := fs.ReadFile(tree, "include/hamr_fortran.c")
	if err != nil {
		return nil, err
	}
	if made["include/hamr.f90"], err = fortranModule(string(shim), header); err != nil {
		return nil, err
	}
	made["include/hamr/fortran.h"] = header
	if made["pyhamr/internal/capi/changes.h"], err = changeBodies(tree, public, own); err != nil {
		return nil, err
	}
	if made["pyhamr/internal/capi/store_calls.h"], err = storeBodies(tree, store, ownStore); err != nil {
		return nil, err
	}
	python, err := pythonFiles(own, ownStore)
	maps.Copy(made, python)
	return made, err
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: spellings ROOT")
		os.Exit(2)
	}
	made, err := files(os.DirFS(os.Args[1]))
	for name, text := range made {
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o666)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "spellings:", err)
		os.Exit(1)
	}
}
