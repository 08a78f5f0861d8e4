package main

import (
	"debug/elf"
	"slices"
	"testing"
)

func TestWhatNeedsPythonIsFound(t *testing.T) {
	strong, weak := elf.ST_INFO(elf.STB_GLOBAL, elf.STT_NOTYPE), elf.ST_INFO(elf.STB_WEAK, elf.STT_NOTYPE)
	found := check([]elf.Symbol{
		{Name: "PyErr_Occurred", Info: weak},
		{Name: "PyLong_FromLong", Info: strong},
		{Name: "_Py_BuildValue_SizeT", Info: strong},
		{Name: "_Py_NoneStruct", Info: weak},
		{Name: "PyExc_ValueError", Info: weak},
		{Name: "PyInit__pyhamr", Info: strong, Section: 12},
		{Name: "malloc", Info: strong},
	})
	want := []string{"PyLong_FromLong is not weak", "_Py_BuildValue_SizeT is not weak", "_Py_NoneStruct is data", "PyExc_ValueError is data"}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}
