package elements

import (
	"math"
	"strconv"
	"strings"
)

// A value has an integer or a bool in bits, in re and im the parts of a number with a point.
type value struct {
	bits   uint64
	re, im float64
}

// reprFloat gives the shortest digits that read back as the same number; with
// an exponent where Python's repr has one, below 1e-4 and from 1e16.
func reprFloat(v float64, width int) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(v, 'e', -1, width)
	_, after, _ := strings.Cut(text, "e")
	if exponent, err := strconv.Atoi(after); err == nil && exponent >= -4 && exponent < 16 {
		return strconv.FormatFloat(v, 'f', -1, width)
	}
	return text
}

// reprHalf tries ever more digits, as strconv knows no 16-bit types.
func reprHalf(value float64, narrow func(float64) uint16) string {
	for digits := 0; digits < 9; digits++ {
		text := strconv.FormatFloat(value, 'e', digits, 64)
		if v, err := strconv.ParseFloat(text, 64); err == nil && narrow(v) == narrow(value) {
			return reprFloat(v, 64)
		}
	}
	return reprFloat(value, 32)
}

func reprComplex(re, im float64, width int) string {
	imaginary := reprFloat(im, width) + "j"
	if re == 0 && !math.Signbit(re) {
		return imaginary
	}
	if imaginary[0] != '-' {
		imaginary = "+" + imaginary
	}
	return "(" + reprFloat(re, width) + imaginary + ")"
}
