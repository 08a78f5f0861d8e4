package dl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const maps = "/proc/self/maps"

// Loaded lists the files of shared libraries that are loaded in this process, by whomever, and whose names begin with
// prefix. It is empty where the system does not tell.
func Loaded(prefix string) []string {
	text, err := os.ReadFile(maps)
	if err != nil {
		return nil
	}
	return loadedIn(string(text), prefix)
}

func loadedIn(maps, prefix string) (files []string) {
	for line := range strings.Lines(maps) {
		at := strings.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		file := strings.TrimSuffix(line[at:], "\n")
		if strings.HasPrefix(filepath.Base(file), prefix) && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}
