package openmp

import (
	"errors"
	"strings"

	"hamr/backends/internal/dl"
)

// How the files of runtimes begin that a process may have loaded, in the order in which they are taken:
// LLVM's and NVIDIA's have nothing but what code on devices needs, GCC's is there for any threads.
// Wheels have copies under names such as libgomp-24e2ab19.so.1.0.0.
var families = []string{"libomptarget", "libnvomp", "libgomp"}

// usual are the libraries that are loaded where the process has none.
var usual = []string{"libgomp.so.1", "libomptarget.so", "libnvomp.so"}

// find returns the runtime to use, how many devices it has, and what was tried for that. It is the
// first with devices of those that the process has loaded, else the first of those, else the first
// that can be had.
func (b *Backend) find(override string) (tried []string, found library, devices int, err error) {
	if override != "" {
		tried = []string{override}
		found, devices, err = b.open(override)
		return tried, found, devices, err
	}
	for _, family := range families {
		for _, file := range dl.Loaded(family) {
			l, n, err := b.open(file)
			if err != nil {
				continue // plugins and OpenACC's part are called alike
			}
			if found.path == "" || (devices < 1 && n > 0) {
				found, devices = l, n
			}
		}
	}
	if found.path != "" {
		return nil, found, devices, nil
	}
	return b.findUsual()
}

func (b *Backend) findUsual() (tried []string, found library, devices int, err error) {
	var words []string
	for _, file := range usual {
		tried = append(tried, file)
		if found, devices, err = b.open(file); err == nil {
			return tried, found, devices, nil
		}
		words = append(words, err.Error())
	}
	return tried, library{}, 0, errors.New(strings.Join(words, "; "))
}

// open loads a library, or finds it loaded, and counts its devices.
func (b *Backend) open(file string) (l library, devices int, err error) {
	b.worker.Do(func() {
		var opened dl.Library
		if opened, err = dl.OpenWith(dl.System, []string{file}, ""); err != nil {
			return
		}
		if err = dl.Bind(opened, &l); err != nil {
			return
		}
		l.path = opened.Path()
		if l.Initialize != 0 {
			dl.Call(l.Initialize)
		}
		devices = int(int32(dl.Call(l.GetNumDevices)))
	})
	return l, devices, err
}
