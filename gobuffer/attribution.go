package gobuffer

import "hamr/backends"

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

// AllocateFor is Allocate of memory that a library is given, not initialised.
func (r *Runtime) AllocateFor(l Library, a backends.Allocator, device, size int, stream backends.Stream) (*Memory, error) {
	if l >= libraryCount {
		return nil, valueError("library", uint8(l), "one of the constants")
	}
	m := r.newMemory(a)
	m.library = l
	if err := r.allocate(m, a, device, size, stream, false); err != nil {
		return nil, err
	}
	return m, nil
}

// come counts memory that was taken: every allocation of our own comes here.
func (m *Memory) come(size int) {
	r := m.runtime
	r.counters[m.region.Allocator].add(m, size)
	if r.books.watched.Load() != 0 {
		if c := r.checked(); c != nil {
			m.life = &lives{allocated: c.now()}
			c.comes(m)
		}
		r.books.come(m, size)
	}
}

// gone counts memory that is given back: every allocation of our own goes here.
func (m *Memory) gone() {
	r, size := m.runtime, m.Size()
	// The list first: who begins to watch has then seen the memory, or is seen here.
	r.counters[m.region.Allocator].remove(m, size)
	if r.books.watched.Load() != 0 {
		if c := r.checked(); c != nil {
			known := m.lives()
			known.freed = c.now()
			m.life = &known
		}
		r.books.gone(m, size)
	}
}

// back undoes gone, of memory that could not be given back.
func (m *Memory) back() {
	r, size := m.runtime, m.Size()
	r.counters[m.region.Allocator].restore(m, size)
	if r.books.watched.Load() != 0 {
		r.books.come(m, size)
	}
}

// grown counts bytes that an allocation has more.
func (m *Memory) grown(by int) {
	r := m.runtime
	r.counters[m.region.Allocator].grow(by)
	if r.books.watched.Load() != 0 {
		r.books.grown(m, by)
	}
}

// Allocation is memory of our own that is not freed yet. What is zero of Thread, Time and Stack is not
// known: the memory was taken before a Recorder was there.
type Allocation struct {
	Library Library
	Region  backends.Region
	Size    int
	Stream  backends.Stream
	Thread  int
	Time    int64 // nanoseconds since 1970
	Stack   int64 // as Recorder's caller numbers them
}

// Allocations lists the memory that is not freed yet: what callers have, and temporaries that are kept
// (see Array.Cached). What Statistics counts as in use is the sum of them.
func (r *Runtime) Allocations() (list []Allocation) {
	if r.check() != nil {
		return nil
	}
	r.eachLiving(func(l *living) {
		m, known := l.memory, l.record
		a := Allocation{Library: m.library, Region: m.region, Size: m.Size(), Stream: m.ordered()}
		if known != nil {
			a.Thread, a.Time, a.Stack = known.thread, known.time, known.stack
		}
		list = append(list, a)
	})
	return list
}

func (r *Runtime) eachLiving(f func(l *living)) {
	for a := range r.counters {
		r.counters[a].each(f)
	}
}
