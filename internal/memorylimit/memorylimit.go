// Package memorylimit tells how much memory a process may have.
package memorylimit

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Bytes is the least of the machine's memory, the limits of the process's control group and of those above it
// (versions 1 and 2), and the process's own limit of address space. It is 0 where nothing of it can be read.
func Bytes() int64 { return bytesBelow("/") }

// bytesBelow is Bytes where the kernel's file systems are in another folder.
func bytesBelow(root string) int64 {
	least := uint64(math.MaxInt64)
	var machine syscall.Sysinfo_t
	if syscall.Sysinfo(&machine) == nil {
		least = min(least, uint64(machine.Totalram)*uint64(machine.Unit))
	}
	var space syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil {
		least = min(least, space.Cur)
	}
	for _, file := range controlFiles(root) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// What is no number is "max".
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			least = min(least, limit)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return int64(least)
}

// controlFiles are those which may have a limit of the process's control groups.
func controlFiles(root string) (files []string) {
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	mounts, _ := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	for group := range strings.Lines(string(groups)) {
		// Number, controllers, path: proc(5) and cgroups(7). Version 2 has no controllers here.
		fields := strings.SplitN(strings.TrimSuffix(group, "\n"), ":", 3)
		if len(fields) < 3 {
			continue
		}
		names, kind, option := []string{"memory.max", "memory.high"}, "cgroup2", ""
		if fields[1] != "" {
			names, kind, option = []string{"memory.limit_in_bytes"}, "cgroup", "memory"
			if !slices.Contains(strings.Split(fields[1], ","), option) {
				continue
			}
		}
		for mount := range strings.Lines(string(mounts)) {
			files = append(files, filesOf(root, mount, kind, option, fields[2], names)...)
		}
	}
	return files
}

// filesOf are the files of a group and those above it at one mount, where that is of the kind.
func filesOf(root, mount, kind, option, group string, names []string) (files []string) {
	// The fields that are there, a dash, and the file system's type, source and options.
	before, after, _ := strings.Cut(mount, " - ")
	at, of := strings.Fields(before), strings.Fields(after)
	if len(at) < 5 || len(of) < 3 || of[0] != kind ||
		(option != "" && !slices.Contains(strings.Split(of[2], ","), option)) {
		return nil
	}
	// A container may have its own group mounted alone, with the path of the machine's.
	below, point := strings.TrimPrefix(group, strings.TrimSuffix(at[3], "/")), at[4]
	for folder := filepath.Join("/", below); ; folder = filepath.Dir(folder) {
		for _, name := range names {
			files = append(files, filepath.Join(root, point, folder, name))
		}
		if folder == "/" {
			return files
		}
	}
}
