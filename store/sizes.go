package store

import (
	"math"
	"os"
)

// smallest is how many bytes lie from one small object to the next, at least.
const smallest = 64

var pageSize = int64(os.Getpagesize())

// roundUp returns bytes in whole units, and the most of these that an int64 has where that is less.
func roundUp(bytes, unit int64) int64 {
	if bytes > math.MaxInt64-unit {
		return math.MaxInt64 / unit * unit
	}
	return (bytes + unit - 1) / unit * unit
}

// placeOf is how many bytes a small object takes: a power of two, or the half between two.
func placeOf(bytes int64) int64 {
	for place := int64(smallest); ; place *= 2 {
		if bytes <= place {
			return place
		}
		if half := place + place/2; bytes <= half && half%smallest == 0 {
			return half
		}
	}
}
