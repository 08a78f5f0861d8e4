package bridge

// Rows are a reply of several values: numbers, texts, whether something is so, and nil, in rows whose columns the
// function says. C has them as a hamr_rows.
type Rows [][]any

// one is a reply of a single row.
func one(values ...any) Rows { return Rows{values} }
