package gobuffer

// Library says whom an allocation is for.
type Library uint8

// The libraries that have memory of hamr's.
const (
	LibraryHamr Library = iota
	LibraryCuPy
	LibraryTorch
	LibraryNumba
	libraryCount
)

// AnyLibrary is all of them, where allocations are chosen.
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
