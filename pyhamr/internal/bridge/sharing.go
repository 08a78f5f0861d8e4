package bridge

import (
	"encoding/hex"
	"strconv"
	"strings"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// openedShares are arrays of other processes' elements that Python has.
var openedShares = newNumbered[*gobuffer.Array](func(uint64) error { return gobuffer.ErrFreed })

// Share makes what other processes open elements by. of is the token of the opened share, or of the store's
// object, that the memory is of, else 0; stored is which.
func Share(memory uint64, at backends.Address, element int, a backends.Allocator, device int, shape, strides string, fixed bool, copying int, readOnly bool, of uint64, stored bool) (reply string, err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	layout, err := sharedLayout(element, shape, strides)
	if err != nil {
		return "", err
	}
	o := gobuffer.Options{Allocator: a, Device: device}
	how := gobuffer.Sharing{Copy: gobuffer.Copying(copying), ReadOnly: readOnly, Settled: true}
	var source *gobuffer.Array
	if layout.Count() == 0 {
		source, err = Runtime.NewArray(layout.Type, layout.Shape, o)
	} else {
		var m *gobuffer.Memory
		if m, err = tokens.get(memory); err == nil {
			source = gobuffer.View(m, at, layout, layout.Count(), fixed, o).Lent()
		}
	}
	if err != nil {
		return "", err
	}
	defer source.Close()
	switch {
	case of != 0 && stored:
		if how.Descriptor, err = storedDescriptor(of); err != nil {
			return "", err
		}
	case of != 0:
		opened, err := openedShares.get(of)
		if err != nil {
			return "", err
		}
		how.Of = opened.Memory()
	}
	made, err := source.Share(how)
	if err != nil {
		return "", err
	}
	frame := made.Frame()
	text := strconv.AppendInt(make([]byte, 0, 2*len(frame)+32), int64(bit(made.Copied())), 10)
	text = strconv.AppendInt(append(text, ' '), int64(bit(made.ReadOnly())), 10)
	text = hex.AppendEncode(append(text, ' '), frame)
	for _, descriptor := range made.Descriptors() {
		text = strconv.AppendInt(append(text, ' '), int64(descriptor), 10)
	}
	return string(text), nil
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

func sharedLayout(element int, shape, strides string) (layout arrayiface.Layout, err error) {
	dimensions, err := numbers(shape)
	if err != nil {
		return layout, err
	}
	steps, err := numbers(strides)
	if err != nil {
		return layout, err
	}
	return arrayiface.NewLayout(arrayiface.ElementType(element), dimensions, steps)
}

func numbers(text string) ([]int, error) {
	words := strings.Fields(text)
	list := make([]int, len(words))
	for i, word := range words {
		var err error
		if list[i], err = strconv.Atoi(word); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// storedDescriptor is that of a sealed object's memory; nil where it lies beside others.
func storedDescriptor(token uint64) (*gobuffer.Descriptor, error) {
	o, err := storeObjects.get(token)
	if err != nil || o.object == nil {
		return nil, err
	}
	return o.object.Descriptor(), nil
}

// OpenShared opens elements that Share was called for, in whatever process.
func OpenShared(frame, descriptors string) (reply string, err error) {
	defer Guard(&err)
	raw, err := hex.DecodeString(frame)
	if err != nil {
		return "", &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "frame", Value: "no hexadecimal text", Accepted: "what Share returned"}
	}
	list, err := numbers(descriptors)
	if err != nil {
		return "", err
	}
	shareEndings.now()
	a, err := Runtime.OpenShared(raw, list)
	if err != nil {
		return "", err
	}
	token := openedShares.keep(a)
	layout, where := a.Layout(), a.Allocator()
	text := strconv.AppendUint(make([]byte, 0, 128), token, 10)
	text = strconv.AppendUint(append(text, ' '), uint64(a.Address()), 10)
	for _, n := range []int{int(where), a.Owner(), bit(a.ReadOnly()), a.Memory().Lease()} {
		text = strconv.AppendInt(append(text, ' '), int64(n), 10)
	}
	text = append(append(text, ' '), layout.Type.String()...)
	for _, list := range [][]int{layout.Shape, layout.Strides} {
		text = append(text, ';')
		for _, n := range list {
			text = strconv.AppendInt(append(text, ' '), int64(n), 10)
		}
	}
	return string(text), nil
}

// EndShared gives opened elements back, which are not used any more. For a device's that waits for the device, and
// nobody waits for it.
func EndShared(token uint64) {
	a, err := openedShares.take(token)
	switch {
	case err != nil:
	case a.Owner() < 0:
		_ = a.Close()
	default:
		shareEndings.aside(openedShare{a})
	}
}

// openedShare is what Python has let go of.
type openedShare struct{ array *gobuffer.Array }

func (o openedShare) end() { _ = o.array.Close() }
