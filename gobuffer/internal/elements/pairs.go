package elements

import (
	"unsafe"

	ai "hamr/arrayiface"
)

var kernels = allKernels()

func allKernels() (table [ai.NumTypes][ai.NumTypes]kernel) {
	for _, dt := range ai.Types() {
		for _, st := range ai.Types() {
			table[dt][st] = pair(dt, st)
		}
	}
	return table
}

// kernelFor gives nil where no rule converts st to dt, or where both are the same and bytes are simply moved.
func kernelFor(dt, st ai.ElementType) kernel {
	if int(dt) >= ai.NumTypes || int(st) >= ai.NumTypes {
		return nil
	}
	return kernels[dt][st]
}

func pair(dt, st ai.ElementType) kernel {
	if dt == st {
		return nil
	}
	if k := exact(dt, st); k != nil {
		return k
	}
	target, source := &rules[dt], &rules[st]
	switch {
	case source.hub == dt:
		return source.toHub
	case target.hub == st:
		return target.fromHub
	case source.hub != ai.Invalid:
		return via(dt, source.hub, st)
	case target.hub != ai.Invalid:
		return via(dt, target.hub, st)
	case source.native == notNative, target.native == notNative:
		return nil
	}
	return natives[source.native-1][target.native-1]
}

// via converts in two steps, a block at a time so that the middle stays in the nearest cache.
func via(dt, mid, st ai.ElementType) kernel {
	first, second := pair(mid, st), pair(dt, mid)
	if first == nil || second == nil {
		return nil
	}
	dsize, ssize := dt.Size(), st.Size()
	return func(dst, src unsafe.Pointer, n int) {
		s := takeScratch()
		defer s.giveBack()
		middle := unsafe.Pointer(&s.a)
		for at := 0; at < n; at += blockLen {
			count := min(blockLen, n-at)
			first(middle, unsafe.Add(src, at*ssize), count)
			second(unsafe.Add(dst, at*dsize), middle, count)
		}
	}
}

// native is a type that Go calculates with: one more than its index in natives.
type native uint8

const (
	notNative native = iota
	nativeBool
	nativeInt8
	nativeInt16
	nativeInt32
	nativeInt64
	nativeUint8
	nativeUint16
	nativeUint32
	nativeUint64
	nativeFloat32
	nativeFloat64

	numNatives = iota - 1
)

// targets are the kernels from one native type to each, in their order. Lists of
// them name no index, so that one that lacks a kernel does not compile.
type targets [numNatives]kernel

var natives [numNatives]targets = [...]targets{
	fromBools(),
	fromIntegers[int8](),
	fromIntegers[int16](),
	fromIntegers[int32](),
	fromIntegers[int64](),
	fromIntegers[uint8](),
	fromIntegers[uint16](),
	fromIntegers[uint32](),
	fromIntegers[uint64](),
	fromFloats[float32](),
	fromFloats[float64](),
}

func fromBools() targets {
	return [...]kernel{
		nil, // one type
		fromBool[int8],
		fromBool[int16],
		fromBool[int32],
		fromBool[int64],
		fromBool[uint8],
		fromBool[uint16],
		fromBool[uint32],
		fromBool[uint64],
		fromBool[float32],
		fromBool[float64],
	}
}

func fromIntegers[S integer]() targets {
	return [...]kernel{
		toBool[S],
		plain[int8, S],
		plain[int16, S],
		plain[int32, S],
		plain[int64, S],
		plain[uint8, S],
		plain[uint16, S],
		plain[uint32, S],
		plain[uint64, S],
		plain[float32, S],
		plain[float64, S],
	}
}

func fromFloats[S float]() targets {
	return [...]kernel{
		toBool[S],
		floatToInteger32[int8, S],
		floatToInteger32[int16, S],
		floatToInteger32[int32, S],
		floatToInteger64[int64, S],
		floatToInteger32[uint8, S],
		floatToInteger32[uint16, S],
		floatToInteger64[uint32, S],
		floatToUint64[S],
		plain[float32, S],
		plain[float64, S],
	}
}
