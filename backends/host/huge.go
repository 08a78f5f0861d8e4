//go:build cgo

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

const (
	writtenPart = 16 << 20 // bytes by one write to a file
	// mostWriters is how many threads write to huge pages at a time.
	mostWriters = 4
)

// patience is how long huge pages may take for a MiB. Small pages take some 0.4 ms, huge ones 0.1 ms unless the
// kernel has to compact memory first.
var patience = 4 * time.Millisecond

// hugePage is the size of the huge pages that the kernel makes for files on demand, or 0 where it does not.
var hugePage = sync.OnceValue(func() int {
	text, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
	if err != nil {
		return 0
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || size < os.Getpagesize() || size > 64<<20 || size&(size-1) != 0 {
		return 0
	}
	return size
})

// hugePart is how many bytes are made huge pages at once, since the kernel interrupts every processor each time.
func hugePart() int { return max(16<<20, hugePage()) }

// mapAnywhere maps a file, where huge pages of it may be mapped as such.
func mapAnywhere(descriptor, size, protection, flags int) (backends.Address, error) {
	huge := hugePage()
	if huge == 0 || size < huge {
		return mapFile(0, size, protection, flags, descriptor)
	}
	reserved, err := mapReserved(size + huge)
	if err != nil {
		return 0, err
	}
	at := (reserved + backends.Address(huge) - 1) / backends.Address(huge) * backends.Address(huge)
	_, err = mapFile(at, size, protection, flags, descriptor)
	if err != nil {
		return 0, errors.Join(err, unmap(reserved, size+huge))
	}
	before := int(at - reserved)
	return at, errors.Join(unmap(reserved, before), unmap(at+backends.Address(size), huge-before))
}

func mapReserved(size int) (backends.Address, error) {
	return mapFile(0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, -1)
}

func unmap(at backends.Address, size int) error {
	if size == 0 {
		return nil
	}
	_, _, code := unix.Syscall(unix.SYS_MUNMAP, uintptr(at), uintptr(size), 0)
	if code != 0 {
		return code
	}
	return nil
}

// takeHuge puts huge pages under a part of a file, which is mapped and begins and ends with one. One small page of
// each is made through the file, which fails if there is no memory. By the mapping, that would be SIGBUS.
func takeHuge(descriptor int, mapped []byte, offset int) error {
	huge := hugePage()
	for at := 0; at < len(mapped); at += huge {
		if err := makePage(descriptor, offset+at); err != nil {
			return err
		}
	}
	return unix.Madvise(mapped, unix.MADV_COLLAPSE)
}

// makePage leaves what is written as it is.
func makePage(descriptor, at int) error {
	for {
		if err := unix.Fallocate(descriptor, unix.FALLOC_FL_KEEP_SIZE, int64(at), 1); err != unix.EINTR {
			return err
		}
	}
}

// WriteShared writes size bytes from an address to the beginning of new memory of NewSharedFile, all of them or until
// the context ends. It uses huge pages where it may: to make, map and write one is quicker than 512 small ones.
func WriteShared(ctx context.Context, descriptor int, from backends.Address, size int) error {
	rest := 0
	if huge := hugePage(); huge > 0 && size >= 2*huge {
		var err error
		if rest, err = writeHuge(ctx, descriptor, from, size/huge*huge); err != nil {
			return err
		}
	}
	return writeParts(ctx, descriptor, bytesAt(from, size), rest, size)
}

// writeHuge writes from the beginning for as long as that is quick, and returns how many bytes.
func writeHuge(ctx context.Context, descriptor int, from backends.Address, size int) (written int, err error) {
	at, err := mapAnywhere(descriptor, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return 0, nil // by the file, then
	}
	defer func() { err = errors.Join(err, unmap(at, size)) }()
	target, source := bytesAt(at, size), bytesAt(from, size)
	return takeParts(ctx, descriptor, target, func(begin, end int) {
		for at := begin; at < end; at += pieceSize {
			piece := min(at+pieceSize, end)
			copy(target[at:piece], source[at:piece])
		}
	}, func(begin, end int) error { return writeParts(ctx, descriptor, source, begin, end) })
}

// PrepareShared puts huge pages under new memory of NewSharedFile where it is mapped for writing, by several threads,
// for as long as that is quick and until the context ends. The rest gets small pages when it is written.
func PrepareShared(ctx context.Context, descriptor int, at backends.Address, size int) error {
	huge := hugePage()
	if huge == 0 || size < 2*huge || int(at)%huge != 0 {
		return ctx.Err()
	}
	nothing := func(int, int) {}
	_, err := takeParts(ctx, descriptor, bytesAt(at, size/huge*huge), nothing, func(int, int) error { return nil })
	return err
}

// takeParts puts huge pages under a mapped file, from the beginning, for as long as that is quick, and returns how many
// bytes have them. ready is called with each part that does. other is called with one that may not, and is the last.
func takeParts(ctx context.Context, descriptor int, target []byte, ready func(begin, end int),
	other func(begin, end int) error) (taken int, err error) {
	part, size := hugePart(), len(target)
	parts := (size + part - 1) / part
	var next, took, made atomic.Int64
	var slow atomic.Bool
	failed := make([]error, min(mostWriters, runtime.GOMAXPROCS(0), parts))
	take := func(i int) {
		for ctx.Err() == nil && !slow.Load() {
			begin := int(next.Add(1)-1) * part
			if begin >= size {
				return
			}
			end := min(begin+part, size)
			start := time.Now()
			if takeHuge(descriptor, target[begin:end], begin) != nil {
				slow.Store(true)
				if failed[i] = other(begin, end); failed[i] != nil {
					return
				}
				continue
			}
			spent, bytes := took.Add(int64(time.Since(start))), made.Add(int64(end-begin))
			if bytes >= int64(4*part) && spent > bytes>>20*int64(patience)*int64(len(failed)) {
				slow.Store(true)
			}
			ready(begin, end)
		}
	}
	var others sync.WaitGroup
	for i := range failed[1:] {
		others.Go(func() { take(i + 1) })
	}
	take(0)
	others.Wait()
	if err := errors.Join(append(failed, ctx.Err())...); err != nil {
		return 0, err
	}
	return min(int(next.Load())*part, size), nil
}

func writeParts(ctx context.Context, descriptor int, elements []byte, at, end int) error {
	for at < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := unix.Pwrite(descriptor, elements[at:min(at+writtenPart, end)], int64(at))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) {
				return outOfShared(len(elements))
			}
			return fmt.Errorf("writing %d bytes to shared memory: %w", len(elements), err)
		}
		at += n
	}
	return nil
}

// NewReadyFile is NewSharedFile with its pages in place, huge ones where possible. FinishReadyFile sets its size. It
// gives up when going on says no, with nil for an error and a descriptor of -1.
func NewReadyFile(size int, goOn func() bool) (descriptor int, err error) {
	if err := checkSharedSize(backends.HostDevice, size); err != nil {
		return -1, err
	}
	if exceedsMachine(size) {
		return -1, outOfShared(size)
	}
	descriptor, err = unix.MemfdCreate(sharingName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, ranOut(err, size)
	}
	if err = unix.Ftruncate(descriptor, int64(size)); err == nil {
		err = makeReady(descriptor, size, goOn)
	}
	if err != nil || !goOn() {
		_ = unix.Close(descriptor)
		if err != nil {
			err = ranOut(err, size)
		}
		return -1, err
	}
	return descriptor, nil
}

func makeReady(descriptor, size int, goOn func() bool) error {
	begin := 0
	if huge := hugePage(); huge > 0 && size >= huge {
		whole := size / huge * huge
		at, err := mapAnywhere(descriptor, whole, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		mapped := bytesAt(at, whole)
		for begin < whole && goOn() {
			end := min(begin+hugePart(), whole)
			if takeHuge(descriptor, mapped[begin:end], begin) != nil {
				break // small ones will do
			}
			begin = end
		}
		if err := unmap(at, whole); err != nil {
			return err
		}
	}
	for begin < size && goOn() {
		part := min(hugePart(), size-begin)
		// This covers the whole range, since it zeroes the pages of files in memory and keeps them.
		err := unix.Fallocate(descriptor, unix.FALLOC_FL_KEEP_SIZE, int64(begin), int64(part))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		begin += part
	}
	return nil
}

// FinishReadyFile turns a descriptor of NewReadyFile into one of NewSharedFile of size bytes. If that is more than
// was ready, the rest is as new.
func FinishReadyFile(descriptor, size int) error {
	if err := unix.Ftruncate(descriptor, int64(size)); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(descriptor), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	return err
}
