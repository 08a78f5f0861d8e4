package gobuffer

// Moment is when something was done with memory, and by whom. What is zero is not known.
type Moment struct {
	Thread int
	Time   int64 // nanoseconds since 1970
	Stack  int64 // as Check's caller numbers them
}

// lives is how memory came to be, and how it ended.
type lives struct{ allocated, freed Moment }

// record is what an allocation knows of how it came to be.
type record struct {
	thread int
	time   int64
	stack  int64
}
