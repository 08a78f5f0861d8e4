// Package elements converts, gathers, scatters, fills and prints the elements of arrays in host memory. It knows
// addresses and layouts only: who owns the memory, and whether it may be touched, is the caller's business.
//
// # Rules of conversion
//
// They are those of NumPy's astype on x86-64, on every architecture (seen with NumPy 2.4.6 and ml_dtypes;
// testdata/numpy_casts.py asks them):
//
//   - integer to integer keeps the low bits;
//   - to Bool is x != 0, so NaN is true, and a complex number is true when
//     either part is; from Bool gives 0 or 1;
//   - complex to real drops the imaginary part, real to complex gives it +0;
//   - floating point to integer truncates. What cannot be held is what the
//     processor gives: Int32 and narrower go through an int32, Int64 and Uint32
//     through an int64, where NaN, infinities and too large numbers become the
//     smallest integer, and the low bits are kept. Uint64 below 2⁶³ goes
//     through an int64, from there up to 2⁶⁴ is exact, and beyond is 0;
//   - to a narrower floating point type rounds to nearest, ties to even, with
//     subnormals, to infinity when too large. Float64 to Float16 rounds once;
//     integers reach Float16 through Float32, and everything reaches BFloat16
//     and the Float8 types through Float32, as in NumPy and ml_dtypes;
//   - NaN stays NaN. Float16 keeps a payload that fits; BFloat16 and the Float8
//     types have one NaN for each sign, or one alone;
//   - a Float8 type without infinities has NaN for infinity and for what is too
//     large, one without a negative zero has zero for it, and Float8E8M0FNU,
//     which has neither zero nor sign, NaN for both.
//
// No address needs to be aligned. Nothing here keeps an address after it returns.
package elements
