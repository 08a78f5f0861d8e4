package backends

// Wrapper is implemented by backends that stand in front of another one, as a pool of
// memory does.
type Wrapper interface {
	// Unwrap returns the backend behind this one.
	Unwrap() Backend
}

// As finds an ability: it returns b as a T or, where b is no T but a Wrapper, the first backend behind it that is
// one. All code looks for abilities by As, so that a wrapper hides none.
func As[T any](b Backend) (able T, ok bool) {
	for b != nil {
		if able, ok = b.(T); ok {
			return able, true
		}
		w, wraps := b.(Wrapper)
		if !wraps {
			break
		}
		b = w.Unwrap()
	}
	return able, false
}
