package gobuffer

import (
	"errors"

	"hamr/gobuffer/internal/elements"
)

// fillElements sets every element of dst to one element's bytes.
func (r *Runtime) fillElements(dst piece, pattern []byte, t Transfer) error {
	count := dst.layout.Count()
	if count == 0 {
		return nil
	}
	//mutate:remove a temporary is kept whose elements were filled
	defer r.kept.changed(dst)
	if dst.maps() {
		entered, leave, err := dst.enter(true)
		if err != nil {
			return err
		}
		return errors.Join(r.fillElements(entered, pattern, t), leave())
	}
	if dst.dense() {
		return dst.fillContiguous(pattern, count, t)
	}
	if dst.onHost() {
		if err := dst.settle(); err != nil {
			return err
		}
		return elements.Fill(dst.pointer(), dst.layout, pattern)
	}
	err := r.fillStrided(dst, pattern, t)
	if errors.Is(err, errors.ErrUnsupported) {
		err = r.fillRuns(dst, pattern, t)
	}
	return err
}
