package arrayiface

import (
	"math"
	"math/bits"
)

// mul multiplies two numbers that are not negative; ok is false if the product
// does not fit an int.
func mul(a, b int) (product int, ok bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int(lo), hi == 0 && lo <= math.MaxInt
}

// add adds two numbers that are not negative; ok is false if the sum does not
// fit an int.
func add(a, b int) (sum int, ok bool) {
	return a + b, a <= math.MaxInt-b
}

// distance is |n| as an unsigned number, so that the smallest int has one.
func distance(n int) uint {
	if n < 0 {
		return -uint(n)
	}
	return uint(n)
}
