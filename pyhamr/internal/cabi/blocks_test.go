package cabi

import (
	"errors"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
)

// read is what C reads at an address.
func read(at unsafe.Pointer) string {
	var text []byte
	for ; *(*byte)(at) != 0; at = unsafe.Add(at, 1) {
		text = append(text, *(*byte)(at))
	}
	return string(text)
}

func readList(at unsafe.Pointer) (texts []string) {
	for ; *(*unsafe.Pointer)(at) != nil; at = unsafe.Add(at, unsafe.Sizeof(at)) {
		texts = append(texts, read(*(*unsafe.Pointer)(at)))
	}
	return texts
}

func TestAnErrorIsOneBlock(t *testing.T) {
	require.Nil(t, failure(nil))
	e := failure(&backends.UnavailableError{Backend: "cuda", Tried: []string{"libcuda.so.1", "", "libcuda.so"},
		Reason: "gone"})
	assert.EqualValues(t, 5, e.kind)
	assert.Equal(t, "cuda", read(unsafe.Pointer(e.source)))
	assert.Contains(t, read(unsafe.Pointer(e.message)), "gone")
	assert.Equal(t, []string{"libcuda.so.1", "", "libcuda.so"}, readList(unsafe.Pointer(e.tried)))
	assert.Nil(t, e.name)
	assert.Nil(t, e.stack)

	e = failure(&backends.DeviceError{API: "cuda", Call: "cuMemAlloc", Name: "CUDA_ERROR_X", Code: -7})
	assert.EqualValues(t, -7, e.code)
	assert.Equal(t, "CUDA_ERROR_X", read(unsafe.Pointer(e.name)))
	assert.Empty(t, readList(unsafe.Pointer(e.tried)))
	assert.Equal(t, "", read(unsafe.Pointer(failure(errors.New("")).message)))
}

func TestTextsAndNumbersOfThem(t *testing.T) {
	s := strings(list{"a", "", "ccc"})
	assert.EqualValues(t, 3, s.count)
	assert.Equal(t, []string{"a", "", "ccc"}, readList(unsafe.Pointer(s.items)))
	assert.EqualValues(t, 0, strings(nil).count)
}

func TestAShapeOfTooManyDimensionsIsNotRead(t *testing.T) {
	_, err := shapeOf(arrayiface.MaxDimensions+1, nil)
	require.ErrorContains(t, err, "65")
	_, err = shapeOf(-1, nil)
	require.ErrorContains(t, err, "-1")
	shape, err := shapeOf(0, nil)
	require.NoError(t, err)
	assert.Empty(t, shape)
}

func TestSizesThatAreNotThereAreRefused(t *testing.T) {
	_, err := sizes("strides", nil, -1)
	require.ErrorContains(t, err, "strides is -1")
	_, err = sizes("strides", nil, math.MaxInt64)
	require.ErrorContains(t, err, "strides is")
	_, err = sizes("strides", nil, 3)
	require.ErrorContains(t, err, "strides is 3")
	_, err = shapeOf(2, nil)
	require.ErrorContains(t, err, "shape is")
}

func TestAPatienceOfAnyLengthIsOne(t *testing.T) {
	assert.Equal(t, 50*time.Millisecond, patience(50))
	assert.Greater(t, patience(math.MaxInt64), 200*365*24*time.Hour)
	assert.Zero(t, patience(0))
	assert.Zero(t, patience(math.MinInt64))
}

func TestATypeThatIsCutOffIsNone(t *testing.T) {
	assert.NotNil(t, hamrParseDlpack(2+256, 64, 1, nil))
	assert.NotNil(t, hamrParseDlpack(2-256, 64, 1, nil))
	assert.NotNil(t, hamrParseDlpack(2, 64+256, 1, nil))
	assert.NotNil(t, hamrParseDlpack(2, 64, 1+65536, nil))
}

func TestNobodyRaisesBeforePythonIsThere(t *testing.T) { assert.False(t, Raise(errors.New("early"))) }
