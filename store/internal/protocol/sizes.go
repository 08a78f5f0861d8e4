package protocol

import (
	"math"
	"os"
)

// Smallest is how many bytes lie from one small object to the next, at least.
const Smallest = 64

var PageSize = int64(os.Getpagesize())

// RoundUp returns bytes in whole units, and the most of these that an int64 has where that is less.
func RoundUp(bytes, unit int64) int64 {
	if bytes > math.MaxInt64-unit {
		return math.MaxInt64 / unit * unit
	}
	return (bytes + unit - 1) / unit * unit
}

// PlaceOf is how many bytes a small object takes: a power of two, or the half between two.
func PlaceOf(bytes int64) int64 {
	for place := int64(Smallest); ; place *= 2 {
		if bytes <= place {
			return place
		}
		if half := place + place/2; bytes <= half && half%Smallest == 0 {
			return half
		}
	}
}
