package dl

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const cLibrary = "libc.so.6"

func TestOpenTellsWhichFile(t *testing.T) {
	library, err := Open([]string{"libhamr-absent.so.7", cLibrary}, "")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(library.Path(), "/"), library.Path())
	assert.Contains(t, library.Path(), "libc")

	address, err := library.Symbol("strlen")
	require.NoError(t, err)
	assert.NotZero(t, address)
	_, err = library.Symbol("hamr_absent")
	assert.ErrorContains(t, err, "hamr_absent")
}

func TestOpenKeepsTheLoadersWords(t *testing.T) {
	_, err := Open([]string{"libhamr-absent.so.7", "libhamr-absent.so.6"}, "")
	var failed *OpenError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, []string{"libhamr-absent.so.7", "libhamr-absent.so.6"}, failed.Names())
	for _, a := range failed.Attempts {
		assert.ErrorContains(t, a.Err, a.Name)
		assert.ErrorContains(t, a.Err, "cannot open shared object file")
		assert.Equal(t, 1, strings.Count(err.Error(), a.Name), "each name is said once: %v", err)
	}
}

func TestOverrideIsTheOnlyNameTried(t *testing.T) {
	_, err := Open([]string{cLibrary}, "/nowhere/libcuda.so")
	var failed *OpenError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, []string{"/nowhere/libcuda.so"}, failed.Names())

	library, err := Open([]string{"libhamr-absent.so.7"}, cLibrary)
	require.NoError(t, err)
	assert.Contains(t, library.Path(), "libc")
}

func TestOpenWithoutNames(t *testing.T) {
	_, err := Open(nil, "")
	assert.EqualError(t, err, "no library name to try")
}

func TestBind(t *testing.T) {
	library, err := Open([]string{cLibrary}, "")
	require.NoError(t, err)
	var c struct {
		Length   func(text string) uintptr `dl:"strlen"`
		Absolute uintptr                   `dl:"abs"`
		Newer    func()                    `dl:"hamr_absent,optional"`
		NewerRaw uintptr                   `dl:"hamr_absent_too,optional"`
		Note     string
	}
	require.NoError(t, Bind(library, &c))
	assert.EqualValues(t, 5, c.Length("hello"))
	assert.EqualValues(t, 7, int32(Call(c.Absolute, ^uintptr(6))))
	assert.Nil(t, c.Newer)
	assert.Zero(t, c.NewerRaw)
}

func TestBindReportsEveryMissingSymbol(t *testing.T) {
	library, err := Open([]string{cLibrary}, "")
	require.NoError(t, err)
	var c struct {
		First  uintptr `dl:"hamr_absent_1"`
		Length uintptr `dl:"strlen"`
		Second func()  `dl:"hamr_absent_2"`
	}
	err = Bind(library, &c)
	var missing *MissingSymbolsError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, []string{"hamr_absent_1", "hamr_absent_2"}, missing.Names)
	assert.ErrorContains(t, err, "lacks hamr_absent_1, hamr_absent_2")
}

func TestBindRefusesMisdeclaredStructs(t *testing.T) {
	library := fakeLibrary{"f": 1}
	assert.Panics(t, func() { _ = Bind(library, 3) })
	assert.Panics(t, func() {
		_ = Bind(library, &struct {
			F int `dl:"f"`
		}{})
	})
	assert.Panics(t, func() {
		_ = Bind(library, &struct {
			F uintptr `dl:"f,maybe"`
		}{})
	})
	assert.Panics(t, func() {
		_ = Bind(library, &struct {
			f uintptr `dl:"f"`
		}{})
	})
}

type fakeLibrary map[string]uintptr

func (fakeLibrary) Path() string { return "fake" }

func (l fakeLibrary) Symbol(name string) (uintptr, error) {
	if a, ok := l[name]; ok {
		return a, nil
	}
	return 0, errors.New("undefined symbol: " + name)
}

type fakeLoader map[string]fakeLibrary

var errRefused = errors.New("wrong ELF class")

func (l fakeLoader) Load(name string) (Library, error) {
	if library, ok := l[name]; ok {
		return library, nil
	}
	return nil, errRefused
}

func TestOpenWithAnotherLoader(t *testing.T) {
	loader := fakeLoader{"libdevice.so.1": {"deviceInit": 0x1000}}
	library, err := OpenWith(loader, []string{"libdevice.so.2", "libdevice.so.1"}, "")
	require.NoError(t, err)
	var functions struct {
		Init uintptr `dl:"deviceInit"`
	}
	require.NoError(t, Bind(library, &functions))
	assert.EqualValues(t, 0x1000, functions.Init)

	_, err = OpenWith(loader, []string{"libdevice.so.2"}, "")
	assert.ErrorIs(t, err, errRefused)
	assert.EqualError(t, err, "libdevice.so.2: wrong ELF class")
}
