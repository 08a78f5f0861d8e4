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
	want := []string{"PyLong_FromLong is not weak", "_Py_BuildValue_SizeT is not weak", "_Py_NoneStruct is data",
		"PyExc_ValueError is data"}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

func TestALibraryThatBindsAtOnceIsFound(t *testing.T) {
	for _, row := range []struct {
		tag   elf.DynTag
		value uint64
		want  bool
	}{
		{elf.DT_FLAGS, uint64(elf.DF_SYMBOLIC | elf.DF_STATIC_TLS), false},
		{elf.DT_FLAGS, uint64(elf.DF_SYMBOLIC | elf.DF_BIND_NOW), true},
		{elf.DT_FLAGS_1, uint64(elf.DF_1_NODELETE), false},
		{elf.DT_FLAGS_1, uint64(elf.DF_1_NODELETE | elf.DF_1_NOW), true},
		{elf.DT_BIND_NOW, 0, true},
	} {
		if found := checkBinding(row.tag, []uint64{row.value}); (len(found) == 1) != row.want {
			t.Errorf("%v %#x: found %q, want a breach: %t", row.tag, row.value, found, row.want)
		}
	}
	if found := checkBinding(elf.DT_BIND_NOW, nil); found != nil {
		t.Errorf("without an entry: found %q", found)
	}
}
