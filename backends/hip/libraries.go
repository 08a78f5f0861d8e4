package hip

import (
	"os"
	"slices"
	"strings"
)

const library = "libamdhip64.so"

// libraries lists the runtime that the process has loaded already, and then those of the system, newest first.
// PyTorch brings one of its own, and two runtimes would know nothing of each other.
func libraries() []string {
	maps, _ := os.ReadFile("/proc/self/maps")
	return append(loaded(string(maps)), library+".7", library+".6", library+".5", library, "/opt/rocm/lib/"+library)
}

// loaded returns the paths of the runtimes that a process's memory maps show.
func loaded(maps string) (paths []string) {
	for line := range strings.Lines(maps) {
		at := strings.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		path := strings.TrimSuffix(line[at:], "\n")
		if strings.Contains(path[strings.LastIndexByte(path, '/'):], library) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
