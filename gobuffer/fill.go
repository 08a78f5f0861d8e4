package gobuffer

import (
	"errors"
	"fmt"
	"unsafe"

	"hamr/arrayiface"
	"hamr/gobuffer/internal/elements"
	"hamr/gobuffer/internal/order"
)

// pattern is the bytes of one element.
type pattern struct {
	room [16]byte
	size int
}

// bytes is nil if there is no pattern.
func (p *pattern) bytes() []byte {
	if p == nil {
		return nil
	}
	return p.room[:p.size]
}

// set makes p what value is as an element of type t. It fails if t cannot hold
// the value.
func (p *pattern) set(t arrayiface.ElementType, value Value) error {
	if t == value.Type && t.Valid() {
		p.size = copy(p.room[:], unsafe.Slice((*byte)(value.Pointer), t.Size()))
		return nil
	}
	if err := elements.Representable(t, value.Pointer, value.Type); err != nil {
		return err
	}
	p.size = t.Size()
	return elements.Convert(unsafe.Pointer(&p.room), t, value.Pointer, value.Type, 1)
}

// patternOf returns what value, which has one element, is as an element of a;
// nil if value is.
func (a *Array) patternOf(value *Array) (*pattern, error) {
	if value == nil {
		return nil, nil
	}
	if err := value.check(); err != nil {
		return nil, err
	}
	if value.Size() != 1 {
		return nil, valueError("value", fmt.Sprintf("an array of %d elements", value.Size()), "a single value")
	}
	host, free, err := a.runtime.onHost(value.all())
	if err != nil {
		return nil, err
	}
	defer free()
	p := new(pattern)
	return p, p.set(a.layout.Type, Value{host.layout.Type, host.pointer()})
}

// Fill sets every element to value, converted.
func (a *Array) Fill(value *Array) error {
	if err := a.checkWritable(); err != nil {
		return err
	}
	if value == nil {
		return valueError("value", "nil", "a single value")
	}
	p, err := a.patternOf(value)
	if err != nil {
		return err
	}
	return a.fill(p)
}

// fill is Fill by an array that was checked.
func (a *Array) fill(p *pattern) error {
	return a.runtime.fillElements(a.all(), p.bytes(), a.options.Transfer)
}

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

func (p piece) fillContiguous(pattern []byte, count int, t Transfer) (err error) {
	m := p.memory
	if m.streams == nil {
		if err := p.settle(); err != nil {
			return err
		}
		return m.backend.Fill(p.region(), pattern, count, p.stream)
	}
	w, err := p.work()
	if err != nil {
		return err
	}
	before, err := p.followedBy(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, before.LetGo()) }()
	if err := m.backend.Fill(p.region(), pattern, count, w.Stream); err != nil {
		// Some of it may be enqueued, as of a fill that is several copies.
		//mutate:replace what a failed fill has enqueued is nobody's
		//mutate:with m.mark(w, before) => nil
		return errors.Join(err, m.mark(w, before))
	}
	if err := m.mark(w, before); err != nil || t != Sync {
		return err
	}
	if err := w.Wait(); err != nil {
		return err
	}
	return m.uses.Done(order.Works{w})
}
