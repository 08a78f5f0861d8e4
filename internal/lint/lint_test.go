package lint

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThisModule(t *testing.T) {
	root := os.DirFS("../..")
	text, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "module "+module+"\n"))
	breaches, err := Check(root)
	require.NoError(t, err)
	for _, b := range breaches {
		t.Error(b)
	}
}

// source is a documented file that imports what is named.
func source(imports ...string) string {
	text := "// Package x is documented.\npackage x\n"
	for _, i := range imports {
		text += "import _ \"" + i + "\"\n"
	}
	return text
}

func TestBreachesAreFound(t *testing.T) {
	for _, c := range []struct {
		file, text, want string
	}{
		{"gobuffer/a.go", source("hamr/backends/host"), "gobuffer may not import backends/host"},
		{"gobuffer/a.go", source("hamr/backends/all"), "may not import backends/all"},
		{"gobuffer/a.go", source("hamr/backends/backendtest"), "may not import backends/backendtest"},
		{"gobuffer/a.go", source("hamr/pyhamr"), "may not import pyhamr"},
		{"gobuffer/a.go", source("hamr/hetero"), "may not import hetero"},
		{"hetero/a.go", source("hamr/pyhamr"), "may not import pyhamr"},
		{"store/a.go", source("hamr/hetero"), "may not import hetero"},
		{"store/a.go", source("hamr/backends/cuda"), "may not import backends/cuda"},
		{"hetero/a.go", source("hamr/backends/cuda"), "may not import backends/cuda"},
		{"gobuffer/internal/elements/a.go", source("hamr/backends/cuda"), "may not import backends/cuda"},
		{"gobuffer/internal/order/a.go", source("hamr/gobuffer/internal/elements"),
			"may not import gobuffer/internal/elements"},
		{"gobuffer/internal/failures/a.go", source("hamr/backends"), "may not import backends"},
		{"backends/cuda/a.go", source("hamr/backends/host"), "may not import backends/host"},
		{"backends/cuda/a.go", source("hamr/arrayiface"), "may not import arrayiface"},
		{"backends/cuda/a.go", source("hamr/gobuffer"), "may not import gobuffer"},
		{"backends/cuda/a_test.go", source("hamr/backends/host"), "may not import backends/host"},
		{"backends/cuda/internal/abi/a.go", source("hamr/backends/hip/internal/abi"),
			"may not import backends/hip/internal/abi"},
		{"backends/cuda/a.go", source(purego), "only backends/internal/dl may import"},
		{"gobuffer/a_test.go", source(purego), "only backends/internal/dl may import"},
		{"backends/a.go", source("hamr/arrayiface"), "may not import arrayiface"},
		{"backends/a.go", source("hamr/backends/internal/dl"), "may not import backends/internal/dl"},
		{"backends/internal/dl/a.go", source("hamr/backends"), "may not import backends"},
		{"arrayiface/a.go", source("hamr/backends"), "may not import backends"},
		{"pyhamr/a.go", source("hamr/backends/cuda"), "may not import backends/cuda"},
		{"pyhamr/a.go", source("hamr/gobuffer/internal/elements"), "may not import gobuffer/internal/elements"},
		{"internal/lint/a.go", source("hamr/backends"), "may not import backends"},
		{"surprise/a.go", source(), "no rule says what folder surprise may import"},
		{"arrayiface/a.go", "package x\n", "no doc comment"},
		{"arrayiface/a.go", source() + strings.Repeat("\n", mostLines), "more than 450"},
		{"python/hamr/_base/a.py", strings.Repeat("\n", mostLines+1), "more than 450"},
		{"backends/host/a.c", strings.Repeat("\n", mostLines+1), "more than 450"},
		{"include/hamr/cpp/a.hpp", strings.Repeat("\n", mostLines+1), "more than 450"},
		{"include/hamr.f90", strings.Repeat("\n", mostLines+1), "more than 450"},
		{"python/hamr/a.pxd", strings.Repeat("\n", mostLines+1), "more than 450"},
	} {
		t.Run(c.file+"/"+c.want, func(t *testing.T) {
			breaches, err := Check(fstest.MapFS{c.file: {Data: []byte(c.text)}})
			require.NoError(t, err)
			require.Len(t, breaches, 1)
			assert.Contains(t, breaches[0], c.want)
		})
	}
}

func TestWhatIsAllowed(t *testing.T) {
	for file, text := range map[string]string{
		"gobuffer/a.go": source("hamr/backends", "hamr/arrayiface",
			"hamr/gobuffer/internal/elements", "fmt"),
		"hetero/a.go": source("hamr/gobuffer", "hamr/backends", "hamr/backends/waiting"),
		"store/a.go": source("hamr/gobuffer", "hamr/backends", "hamr/backends/host",
			"hamr/arrayiface"),
		"hetero/a_test.go":   source("hamr/backends/host", "hamr/backends/backendtest", "hamr/hetero"),
		"gobuffer/a_test.go": source("hamr/backends/host", "hamr/backends/backendtest", "hamr/gobuffer"),
		"backends/cuda/a.go": source("hamr/backends", "hamr/backends/internal/dl",
			"hamr/backends/cuda/internal/abi"),
		"backends/cuda/a_test.go":         source("hamr/backends/backendtest", "hamr/backends/cuda"),
		"backends/cuda/internal/abi/a.go": source("hamr/backends"),
		"backends/internal/dl/a.go":       source(purego),
		"backends/all/a.go":               source("hamr/backends", "hamr/backends/cuda"),
		"pyhamr/a.go": source("hamr/gobuffer", "hamr/arrayiface", "hamr/backends",
			"hamr/backends/all", "hamr/pyhamr/internal/tokens"),
		"arrayiface/a_test.go": source("hamr/arrayiface"),
		"arrayiface/b.go": "// Code generated by x. DO NOT EDIT.\npackage x\n" +
			strings.Repeat("\n", mostLines),
		"python/hamr/_gopy/hamr.c":           strings.Repeat("\n", mostLines+1),
		".venv/lib/a.py":                     strings.Repeat("\n", mostLines+1),
		"python/hamr/_gopy/a.go":             source("hamr/gobuffer"),
		"backends/backendtest/fake_extra.go": source("hamr/backends"),
	} {
		t.Run(file, func(t *testing.T) {
			tree := fstest.MapFS{file: {Data: []byte(text)}}
			breaches, err := Check(tree)
			require.NoError(t, err)
			assert.Empty(t, breaches)
		})
	}
}
