package elements

import (
	"fmt"
	"unsafe"

	ai "hamr/arrayiface"
)

// ErrNoRule is what Convert and its kin wrap for element types that they do not know.
var ErrNoRule error = ruleError("no sound rule")

type ruleError string

func (e ruleError) Error() string { return string(e) }

// IsTypeError is as ValueError's.
func (e ruleError) IsTypeError() bool { return true }

func noRule(dt, st ai.ElementType) error {
	return fmt.Errorf("%w converts %s to %s: unknown element type", ErrNoRule, st, dt)
}

func checkPair(dt, st ai.ElementType) error {
	if dt == st && dt.Valid() || kernelFor(dt, st) != nil {
		return nil
	}
	return noRule(dt, st)
}

// Convert writes n elements of type st that follow one another at src as type dt to dst, by the rules in the package's
// documentation; elements of one type are copied as they are. The two may overlap if the types are the same. From 4 MiB
// of output the work is shared among up to 8 goroutines.
func Convert(dst unsafe.Pointer, dt ai.ElementType, src unsafe.Pointer, st ai.ElementType, n int) error {
	if err := checkPair(dt, st); err != nil {
		return err
	}
	if n > 0 {
		convert(dst, dt, src, st, n)
	}
	return nil
}

// convert is Convert of types that were checked.
func convert(dst unsafe.Pointer, dt ai.ElementType, src unsafe.Pointer, st ai.ElementType, n int) {
	if dt == st {
		moveParallel(dst, src, n*dt.Size())
		return
	}
	k, dsize, ssize := kernelFor(dt, st), dt.Size(), st.Size()
	if n*dsize < parallelBytes { // without a function for goroutines, which takes memory
		run(k, dt, dst, st, src, n)
		return
	}
	inParallel(n, n*dsize, func(from, to int) {
		run(k, dt, unsafe.Add(dst, from*dsize), st, unsafe.Add(src, from*ssize), to-from)
	})
}

// run is Convert without its checks and without other goroutines.
func run(k kernel, dt ai.ElementType, dst unsafe.Pointer, st ai.ElementType, src unsafe.Pointer, n int) {
	if aligned(dst, dt) && aligned(src, st) {
		for dsize, ssize := dt.Size(), st.Size(); n > pieceLen; n -= pieceLen {
			piece(k, dst, src, pieceLen)
			dst, src = unsafe.Add(dst, pieceLen*dsize), unsafe.Add(src, pieceLen*ssize)
		}
		k(dst, src, n)
		return
	}
	// Not every processor loads a misaligned number, and Go promises none.
	s := takeScratch()
	defer s.giveBack()
	in, out, dsize, ssize := unsafe.Pointer(&s.a), unsafe.Pointer(&s.b), dt.Size(), st.Size()
	for at := 0; at < n; at += blockLen {
		count := min(blockLen, n-at)
		move(in, unsafe.Add(src, at*ssize), count*ssize)
		piece(k, out, in, count)
		move(unsafe.Add(dst, at*dsize), out, count*dsize)
	}
}

// piece looks, as kernels, which call nothing, do not.
//
//go:noinline
func piece(k kernel, dst, src unsafe.Pointer, n int) { k(dst, src, n) }

func moveParallel(dst, src unsafe.Pointer, bytes int) {
	d, s := uintptr(dst), uintptr(src)
	if bytes < parallelBytes || d < s+uintptr(bytes) && s < d+uintptr(bytes) {
		if d != s {
			move(dst, src, bytes)
		}
		return
	}
	inParallel(bytes, bytes, func(from, to int) {
		move(unsafe.Add(dst, from), unsafe.Add(src, from), to-from)
	})
}
