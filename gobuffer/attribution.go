package gobuffer

// Library says which library an allocation is for.
type Library uint8

// The libraries that can hold memory of hamr.
const (
	LibraryHamr Library = iota
	LibraryCuPy
	LibraryTorch
	LibraryNumba
	libraryCount
)

// AnyLibrary stands for all libraries where allocations are selected.
const AnyLibrary Library = 255

var libraryNames = [libraryCount]string{"hamr", "cupy", "torch", "numba"}

func (l Library) String() string {
	if l >= libraryCount {
		return "any"
	}
	return libraryNames[l]
}

// LibraryNamed returns the library of a name; "" is any.
func LibraryNamed(name string) (Library, error) {
	if name == "" {
		return AnyLibrary, nil
	}
	for l, known := range libraryNames {
		if known == name {
			return Library(l), nil
		}
	}
	return AnyLibrary, valueError("library", "\""+name+"\"", "hamr, cupy, torch or numba")
}

// Moment is when something was done with memory, and on which thread. Unknown fields are zero.
type Moment struct {
	Thread int
	Time   int64 // nanoseconds since 1970
	Stack  int64 // as Check's caller numbers them
}

// lives is when memory was allocated and when it was freed.
type lives struct{ allocated, freed Moment }
