package memorylimit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBytes has control groups of both versions, as machines and containers show them.
func TestBytes(t *testing.T) {
	machine := bytesBelow(t.TempDir())
	require.Positive(t, machine)
	require.Greater(t, machine, int64(500<<20))
	assert.Equal(t, machine, bytesBelow("/nowhere"))
	for name, c := range map[string]struct {
		group, mounts string
		files         map[string]string
		want          int64
	}{
		"none": {"0::/\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", nil, machine},
		"its own, of version 2": {
			"0::/a/b\n", "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
			map[string]string{"/sys/fs/cgroup/a/b/memory.max": "419430400\n", "/sys/fs/cgroup/a/memory.max": "max\n"}, 400 << 20,
		},
		"one above": {
			"0::/a/b\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			map[string]string{"/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "209715200\n"}, 200 << 20,
		},
		"what is slowed down from": {
			"0::/a\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			map[string]string{"/sys/fs/cgroup/a/memory.max": "419430400\n", "/sys/fs/cgroup/a/memory.high": "104857600\n"},
			100 << 20,
		},
		"a container's namespace": {
			"0::/\n", "30 24 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup ro\n",
			map[string]string{"/sys/fs/cgroup/memory.max": "419430400\n"}, 400 << 20,
		},
		"version 1": {
			"4:memory:/a\n3:cpu:/b\n", "36 32 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			map[string]string{"/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "419430400\n",
				"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 400 << 20,
		},
		"version 1 with another controller, and a mount that another one has": {
			"7:cpu,memory:/a\n", "35 32 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
				"36 32 0:33 / /mnt/m rw - cgroup cgroup rw,cpu,memory\n",
			map[string]string{"/mnt/m/a/memory.limit_in_bytes": "419430400\n"}, 400 << 20,
		},
		"a container of version 1, by the machine's path": {
			"4:memory:/docker/ab\n", "36 32 0:33 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			map[string]string{"/sys/fs/cgroup/memory/memory.limit_in_bytes": "419430400\n"}, 400 << 20,
		},
		"both": {
			"4:memory:/a\n0::/b\n", "36 32 0:33 / /m rw - cgroup cgroup rw,memory\n41 31 0:38 / /u rw - cgroup2 cgroup2 rw\n",
			map[string]string{"/m/a/memory.limit_in_bytes": "419430400\n", "/u/b/memory.max": "209715200\n"}, 200 << 20,
		},
		"lines that say nothing": {"x\n\n4:memory\n", "1 2\n - \n3 4 5 6 7 - cgroup2\n", nil, machine},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(file, text string) {
				file = filepath.Join(root, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			}
			write("proc/self/cgroup", c.group)
			write("proc/self/mountinfo", c.mounts)
			for file, text := range c.files {
				write(file, text)
			}
			assert.Equal(t, c.want, bytesBelow(root))
		})
	}
}
