package peek

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestWord(t *testing.T) {
	something := new(uintptr)
	*something = 0x1234
	word, readable, believed := Word(uintptr(unsafe.Pointer(something)))
	if believed {
		t.Skip("process_vm_readv is forbidden here")
	}
	assert.True(t, readable)
	assert.EqualValues(t, 0x1234, word)
	for _, nowhere := range []uintptr{0, 1, 4095, 1 << 52, ^uintptr(0) - 6} {
		_, readable, believed := Word(nowhere)
		assert.False(t, readable || believed, "%#x", nowhere)
	}
}
