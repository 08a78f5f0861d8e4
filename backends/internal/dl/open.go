package dl

import "strings"

// Attempt is one name that was tried and what the loader said to it.
type Attempt struct {
	Name string
	Err  error
}

// OpenError says that no name led to a library.
type OpenError struct {
	Attempts []Attempt
}

// Error gives the loader's words for each name in turn.
func (e *OpenError) Error() string {
	if len(e.Attempts) == 0 {
		return "no library name to try"
	}
	words := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		words[i] = a.Err.Error()
		// Most loaders name the file themselves.
		if !strings.Contains(words[i], a.Name) {
			words[i] = a.Name + ": " + words[i]
		}
	}
	return strings.Join(words, "; ")
}

// Unwrap gives errors.Is and errors.As the loader's errors.
func (e *OpenError) Unwrap() []error {
	list := make([]error, len(e.Attempts))
	for i, a := range e.Attempts {
		list[i] = a.Err
	}
	return list
}

// Names lists what was looked for, in order.
func (e *OpenError) Names() []string {
	names := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		names[i] = a.Name
	}
	return names
}

// Open loads the first of names that can be had. A non-empty override, the value of an environment variable, is the
// only name tried, since its user wants that library, or the reason why it cannot be loaded. The error is an
// *OpenError.
func Open(names []string, override string) (Library, error) {
	return OpenWith(System, names, override)
}

// OpenWith is Open through another loader.
func OpenWith(loader Loader, names []string, override string) (Library, error) {
	if override != "" {
		names = []string{override}
	}
	failed := &OpenError{}
	for _, name := range names {
		library, err := loader.Load(name)
		if err == nil {
			return library, nil
		}
		failed.Attempts = append(failed.Attempts, Attempt{name, err})
	}
	return nil, failed
}
