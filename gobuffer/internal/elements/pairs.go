package elements

import (
	"unsafe"

	ai "hamr/arrayiface"
)

const elementTypes = int(ai.Float8E8M0FNU) + 1

var kernels = allKernels()

func allKernels() (table [elementTypes][elementTypes]kernel) {
	for d := range table {
		for s := range table[d] {
			table[d][s] = pair(ai.ElementType(d), ai.ElementType(s))
		}
	}
	return table
}

// kernelFor gives nil where no rule converts st to dt, or where both are the
// same and bytes are simply moved.
func kernelFor(dt, st ai.ElementType) kernel {
	if int(dt) >= elementTypes || int(st) >= elementTypes {
		return nil
	}
	return kernels[dt][st]
}

func pair(dt, st ai.ElementType) kernel {
	if dt == st {
		return nil
	}
	if k := special(dt, st); k != nil {
		return k
	}
	if mid := hub(st); mid != ai.Invalid {
		return via(dt, mid, st)
	}
	if mid := hub(dt); mid != ai.Invalid {
		return via(dt, mid, st)
	}
	switch st {
	case ai.Bool:
		return fromBoolTo(dt)
	case ai.Int8:
		return fromInteger[int8](dt)
	case ai.Int16:
		return fromInteger[int16](dt)
	case ai.Int32:
		return fromInteger[int32](dt)
	case ai.Int64:
		return fromInteger[int64](dt)
	case ai.Uint8:
		return fromInteger[uint8](dt)
	case ai.Uint16:
		return fromInteger[uint16](dt)
	case ai.Uint32:
		return fromInteger[uint32](dt)
	case ai.Uint64:
		return fromInteger[uint64](dt)
	case ai.Float32:
		return fromFloat[float32](dt)
	case ai.Float64:
		return fromFloat[float64](dt)
	}
	return nil
}

// hub names the type through which one that Go has no arithmetic for reaches
// the rest, Invalid for those that need none. Nothing is lost on the way but
// what the rules of this package say: special has the pair that would lose more.
func hub(t ai.ElementType) ai.ElementType {
	switch t {
	case ai.Float16, ai.BFloat16, ai.Complex64:
		return ai.Float32
	case ai.Complex128:
		return ai.Float64
	}
	if float8s[t] != nil {
		return ai.Float32
	}
	return ai.Invalid
}

func special(dt, st ai.ElementType) kernel {
	if f := float8s[st]; f != nil && dt == ai.Float32 {
		return f.toFloat32
	}
	if f := float8s[dt]; f != nil && st == ai.Float32 {
		return f.fromFloat32
	}
	switch [2]ai.ElementType{dt, st} {
	case [2]ai.ElementType{ai.Float32, ai.Float16}:
		return float16To32
	case [2]ai.ElementType{ai.Float16, ai.Float32}:
		return float32To16
	case [2]ai.ElementType{ai.Float16, ai.Float64}:
		return float64To16
	case [2]ai.ElementType{ai.Float32, ai.BFloat16}:
		return bfloat16To32
	case [2]ai.ElementType{ai.BFloat16, ai.Float32}:
		return float32ToB16
	case [2]ai.ElementType{ai.Float32, ai.Complex64}:
		return realPart[float32]
	case [2]ai.ElementType{ai.Float64, ai.Complex128}:
		return realPart[float64]
	case [2]ai.ElementType{ai.Complex64, ai.Float32}:
		return withZeroImaginary[float32]
	case [2]ai.ElementType{ai.Complex128, ai.Float64}:
		return withZeroImaginary[float64]
	case [2]ai.ElementType{ai.Complex64, ai.Complex128}:
		return complexToComplex[float32, float64]
	case [2]ai.ElementType{ai.Complex128, ai.Complex64}:
		return complexToComplex[float64, float32]
	case [2]ai.ElementType{ai.Bool, ai.Complex64}:
		return complexToBool[float32]
	case [2]ai.ElementType{ai.Bool, ai.Complex128}:
		return complexToBool[float64]
	}
	return nil
}

// via converts in two steps, a block at a time so that the middle stays in the
// nearest cache.
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

func fromBoolTo(dt ai.ElementType) kernel {
	switch dt {
	case ai.Int8:
		return fromBool[int8]
	case ai.Int16:
		return fromBool[int16]
	case ai.Int32:
		return fromBool[int32]
	case ai.Int64:
		return fromBool[int64]
	case ai.Uint8:
		return fromBool[uint8]
	case ai.Uint16:
		return fromBool[uint16]
	case ai.Uint32:
		return fromBool[uint32]
	case ai.Uint64:
		return fromBool[uint64]
	case ai.Float32:
		return fromBool[float32]
	case ai.Float64:
		return fromBool[float64]
	}
	return nil
}

func fromInteger[S integer](dt ai.ElementType) kernel {
	switch dt {
	case ai.Bool:
		return toBool[S]
	case ai.Int8:
		return plain[int8, S]
	case ai.Int16:
		return plain[int16, S]
	case ai.Int32:
		return plain[int32, S]
	case ai.Int64:
		return plain[int64, S]
	case ai.Uint8:
		return plain[uint8, S]
	case ai.Uint16:
		return plain[uint16, S]
	case ai.Uint32:
		return plain[uint32, S]
	case ai.Uint64:
		return plain[uint64, S]
	case ai.Float32:
		return plain[float32, S]
	case ai.Float64:
		return plain[float64, S]
	}
	return nil
}

func fromFloat[S float](dt ai.ElementType) kernel {
	switch dt {
	case ai.Bool:
		return toBool[S]
	case ai.Int8:
		return floatToInteger32[int8, S]
	case ai.Int16:
		return floatToInteger32[int16, S]
	case ai.Int32:
		return floatToInteger32[int32, S]
	case ai.Int64:
		return floatToInteger64[int64, S]
	case ai.Uint8:
		return floatToInteger32[uint8, S]
	case ai.Uint16:
		return floatToInteger32[uint16, S]
	case ai.Uint32:
		return floatToInteger64[uint32, S]
	case ai.Uint64:
		return floatToUint64[S]
	case ai.Float32:
		return plain[float32, S]
	case ai.Float64:
		return plain[float64, S]
	}
	return nil
}
