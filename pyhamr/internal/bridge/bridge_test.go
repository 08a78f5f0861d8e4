package bridge

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// room is a descriptor with space for its dimensions, as Python's are.
type room struct {
	Descriptor
	shape, strides [arrayiface.MaxDimensions]int64
}

func describe(t arrayiface.ElementType, shape ...int64) *room {
	r := &room{}
	r.Allocator, r.Device, r.Element, r.NDim = int32(backends.Malloc), backends.HostDevice, int32(t), int32(len(shape))
	copy(r.shape[:], shape)
	r.Shape, r.Strides = &r.shape[0], &r.strides[0]
	return r
}

func create(t *testing.T, r *room, value float64) {
	t.Helper()
	require.NoError(t, Create(&r.Descriptor, unsafe.Pointer(&value), int32(arrayiface.Float64)))
}

func TestCreateDescribesWhatItMade(t *testing.T) {
	live := LiveReferences()
	r := describe(arrayiface.Float32, 2, 3)
	create(t, r, 1.5)
	assert.NotZero(t, r.Memory)
	assert.Equal(t, r.Base, r.Pointer)
	assert.EqualValues(t, 24, r.Size)
	assert.EqualValues(t, 6, r.Capacity)
	assert.Equal(t, []int{12, 4}, r.borrowedStrides())
	assert.EqualValues(t, 1<<reachableShift, r.Flags)
	a, err := r.Array()
	require.NoError(t, err)
	text, err := a.Text(0)
	require.NoError(t, err)
	assert.Equal(t, "{1.5, 1.5, 1.5, 1.5, 1.5, 1.5}", text)
	require.NoError(t, a.Close())
	require.NoError(t, Release(r.Memory))
	assert.Equal(t, live, LiveReferences())
}

func TestCreateThatFailsLeavesNothing(t *testing.T) {
	live := LiveReferences()
	big := 1e300
	r := describe(arrayiface.Int8, 4)
	require.Error(t, Create(&r.Descriptor, unsafe.Pointer(&big), int32(arrayiface.Float64)))
	assert.Zero(t, r.Memory)
	require.Error(t, Create(&describe(arrayiface.Int8, 1<<40, 1<<40).Descriptor, nil, 0))
	require.Error(t, Create(&describe(arrayiface.Int8, -1).Descriptor, nil, 0))
	assert.Equal(t, live, LiveReferences())
}

func TestStaleTokenIsAnError(t *testing.T) {
	r := describe(arrayiface.Uint8, 8)
	create(t, r, 1)
	stale := r.Memory
	require.NoError(t, Release(stale))
	again := describe(arrayiface.Uint8, 8)
	create(t, again, 2)
	defer Release(again.Memory)
	assert.Equal(t, uint32(stale), uint32(again.Memory), "the slot is used again")
	assert.ErrorIs(t, Release(stale), gobuffer.ErrFreed)
	_, err := r.Array()
	assert.ErrorIs(t, err, gobuffer.ErrFreed)
}

func TestStoreKeepsTheTokenOfTheSameMemory(t *testing.T) {
	source := describe(arrayiface.Uint8, 4)
	create(t, source, 7)
	a, err := source.Array()
	require.NoError(t, err)

	same := describe(arrayiface.Uint8)
	require.NoError(t, a.Resize(2, nil))
	same.Store(a, &source.Descriptor)
	assert.Equal(t, source.Memory, same.Memory)
	assert.Equal(t, []int{2}, same.borrowedShape())

	other := describe(arrayiface.Uint8)
	require.NoError(t, a.Resize(1000, nil))
	other.Store(a, &source.Descriptor)
	assert.NotEqual(t, source.Memory, other.Memory)

	require.NoError(t, a.Close())
	require.NoError(t, Release(other.Memory))
	require.NoError(t, Release(source.Memory))
}

func TestAdoptTellsTheOwner(t *testing.T) {
	memory := new([32]byte)
	var pinned runtime.Pinner
	pinned.Pin(memory)
	defer pinned.Unpin()
	told := 0
	r := describe(arrayiface.Uint16, 2, 4)
	r.strides[0], r.strides[1] = 16, -2
	r.Pointer = uint64(uintptr(unsafe.Pointer(memory))) + 6
	require.NoError(t, Adopt(&r.Descriptor, func() { told++ }))
	assert.Equal(t, uint64(uintptr(unsafe.Pointer(memory))), r.Base)
	assert.EqualValues(t, 24, r.Size)
	assert.EqualValues(t, 8, r.Capacity)
	a, err := r.Array()
	require.NoError(t, err)
	require.NoError(t, Release(r.Memory))
	assert.Zero(t, told, "the array still uses the memory")
	require.NoError(t, a.Close())
	assert.Equal(t, 1, told)
}

func TestAdoptRefusesWhatCannotBe(t *testing.T) {
	for name, change := range map[string]func(*room){
		"no address":                 func(r *room) { r.Pointer = 0 },
		"strides below address zero": func(r *room) { r.Pointer, r.strides[0] = 4, -8 },
		"strides beyond the end":     func(r *room) { r.Pointer = ^uint64(0) - 3 },
		"a negative dimension":       func(r *room) { r.shape[0] = -3 },
		"bytes that do not fit":      func(r *room) { r.shape[0] = 1 << 62 },
		"no element type":            func(r *room) { r.Element = 99 },
		"no allocator":               func(r *room) { r.Allocator = 31 },
	} {
		t.Run(name, func(t *testing.T) {
			r := describe(arrayiface.Float64, 3)
			r.Pointer, r.strides[0] = 1<<20, 8
			change(r)
			told := false
			require.Error(t, Adopt(&r.Descriptor, func() { told = true }))
			assert.Zero(t, r.Memory)
			assert.False(t, told)
		})
	}
}

// unfit is a number that a type does not hold, by its kind or not.
type unfit bool

func (unfit) Error() string       { return "value 300 does not fit int8" }
func (e unfit) IsTypeError() bool { return bool(e) }

func TestClassifyTakesErrorsApart(t *testing.T) {
	for kind, err := range map[Kind]error{
		Unavailable: fmt.Errorf("while asking: %w",
			&backends.UnavailableError{Backend: "cuda", Tried: []string{"libcuda.so.1"}}),
		OutOfMemory:   &backends.OutOfMemoryError{Size: 5},
		DeviceError:   &backends.DeviceError{API: "cuda", Name: "CUDA_ERROR_X", Code: 7},
		Freed:         fmt.Errorf("token: %w", gobuffer.ErrFreed),
		Forked:        &backends.ForkedError{},
		ValueError:    &gobuffer.ArgumentError{Fault: gobuffer.BadValue},
		TypeError:     &arrayiface.Error{Key: "typestr", Type: true},
		IndexError:    &gobuffer.ArgumentError{Fault: gobuffer.BadIndex},
		InternalError: &PanicError{Value: "boom", Stack: "here"},
		InUse:         fmt.Errorf("for writing: %w", gobuffer.ErrInUse),
		OutOfRange:    unfit(false),
	} {
		f := Classify(err)
		assert.Equal(t, kind, f.Kind, "%v", err)
		if kind == Unavailable {
			assert.Equal(t, err.Error()+"; hamr info shows what this machine has", f.Message)
		} else {
			assert.Equal(t, err.Error(), f.Message)
		}
		switch kind {
		case Unavailable:
			assert.Equal(t, "cuda", f.Source)
			assert.Equal(t, []string{"libcuda.so.1"}, f.Tried)
		case OutOfMemory:
			assert.Equal(t, 5, f.Size)
		case DeviceError:
			assert.Equal(t, Failure{Kind: kind, Message: f.Message, Source: "cuda", Name: "CUDA_ERROR_X", Code: 7}, f)
		case InternalError:
			assert.Equal(t, "here", f.Stack)
		}
	}
	assert.Equal(t, ValueError, Classify(errors.New("of no type")).Kind)
	assert.Equal(t, TypeError, Classify(unfit(true)).Kind)
}

func TestGuardTurnsPanicIntoError(t *testing.T) {
	err := func() (err error) {
		defer Guard(&err)
		var d *Descriptor
		d.NDim = 1
		return nil
	}()
	var crash *PanicError
	require.True(t, errors.As(err, &crash))
	assert.Contains(t, crash.Stack, "bridge_test.go")
}
