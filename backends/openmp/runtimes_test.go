package openmp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/backends/internal/dl"
)

var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "hamr-openmp-"); err != nil {
		panic(err)
	}
	// It must have no devices, so it looks for plugins before there is one.
	_ = openOf("libgomp.so.1").Probe()
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// openOf returns the backend over a library.
func openOf(file string) *Backend {
	return New(func(variable string) string {
		if variable == LibrarySetting {
			return file
		}
		return ""
	})
}

// build makes a library of tests/openmp/offload.
func build(t testing.TB, arguments ...string) (file string) {
	t.Helper()
	if _, err := exec.LookPath(compiler()); err != nil {
		t.Skip(err)
	}
	output, err := exec.Command("sh",
		append([]string{"../../tests/openmp/offload/build.sh"}, arguments...)...).CombinedOutput()
	require.NoError(t, err, string(output))
	return strings.TrimSpace(string(output))
}

func compiler() string {
	if set := strings.Fields(os.Getenv("CC")); len(set) > 0 {
		return set[0]
	}
	return "cc"
}

// load loads a library for the whole process.
func load(t testing.TB, file string) dl.Library {
	t.Helper()
	l, err := dl.OpenWith(dl.System, []string{file}, "")
	require.NoError(t, err)
	return l
}

// gcc is GCC's runtime with whatever devices the machine has.
func gcc(t testing.TB) *Backend {
	t.Helper()
	b := openOf("libgomp.so.1")
	if err := b.Probe(); err != nil {
		t.Skip(err)
	}
	return b
}

// host is GCC's runtime with its initial device.
func host(t testing.TB) *Backend {
	t.Helper()
	b := gcc(t)
	if !b.onHost {
		t.Skipf("the machine's libgomp has %d devices", b.count)
	}
	return b
}

var plugin struct {
	once sync.Once
	file string
	// Functions of the plugin.
	live, threads uintptr
}

// device is GCC's runtime with devices whose memory the host cannot touch: a copy of it, which finds the
// tests' plugin by its name.
func device(t testing.TB) *Backend {
	t.Helper()
	from, err := os.ReadFile(host(t).library.path)
	require.NoError(t, err)
	plugin.once.Do(func() {
		found := load(t, build(t, "plugin", folder))
		plugin.live, err = found.Symbol("hamr_plugin_live")
		require.NoError(t, err)
		plugin.threads, err = found.Symbol("hamr_plugin_threads")
		require.NoError(t, err)
		// Which version of its plugins a libgomp takes it says to nobody.
		for version := 1; version <= 4 && plugin.file == ""; version++ {
			t.Setenv("HAMR_TEST_GOMP_VERSION", fmt.Sprint(version))
			file := filepath.Join(folder, fmt.Sprintf("libgomp-%d.so.1", version))
			require.NoError(t, os.WriteFile(file, from, 0o755))
			b := openOf(file)
			require.NoError(t, b.Probe())
			if !b.onHost {
				plugin.file = file
			}
		}
	})
	require.NotEmpty(t, plugin.file, "no version of libgomp's plugins is taken")
	b := openOf(plugin.file)
	require.NoError(t, b.Probe())
	require.Equal(t, 2, b.count)
	return b
}

// llvm is LLVM's runtime with the devices of its plugin for the host's processor: that of the folder
// HAMR_TEST_LLVM, else the newest that is installed.
func llvm(t testing.TB) *Backend {
	t.Helper()
	at := os.Getenv("HAMR_TEST_LLVM")
	if at == "" {
		found, err := filepath.Glob("/usr/lib/llvm-*/lib/libomptarget.so")
		require.NoError(t, err)
		if len(found) == 0 {
			t.Skip("no libomptarget.so in /usr/lib/llvm-*/lib")
		}
		at = filepath.Dir(found[len(found)-1])
	}
	load(t, build(t, "registered", folder, at))
	b := New(func(string) string { return "" })
	require.NoError(t, b.Probe())
	require.Contains(t, b.library.path, "libomptarget", "what the process has loaded")
	if b.onHost {
		t.Skip("LLVM's runtime has no plugin for this processor")
	}
	return b
}
