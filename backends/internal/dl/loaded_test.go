package dl

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoaded(t *testing.T) {
	library, err := Open([]string{cLibrary}, "")
	require.NoError(t, err)
	files := Loaded("libc.so")
	require.Len(t, files, 1)
	again, err := Open(files, "")
	require.NoError(t, err)
	assert.Equal(t, library.(*systemLibrary).handle, again.(*systemLibrary).handle)
	assert.Empty(t, Loaded("libhamr-absent"))
}

func TestLoadedInMaps(t *testing.T) {
	const text = `7f00-7f01 r--p 00000000 08:01 11   /opt/with space/libgomp-24e2.so.1
7f01-7f02 r-xp 00001000 08:01 11                         /opt/with space/libgomp-24e2.so.1
7f02-7f03 r-xp 00000000 08:01 12                         /usr/lib/libgomp.so.1.0.0
7f03-7f04 rw-p 00000000 00:00 0                          [heap]
7f04-7f05 r-xp 00000000 08:01 13                         /libgomp/libother.so
7f05-7f06 rw-p 00000000 00:00 0
`
	assert.Equal(t, []string{"/opt/with space/libgomp-24e2.so.1", "/usr/lib/libgomp.so.1.0.0"}, loadedIn(text, "libgomp"))
}
