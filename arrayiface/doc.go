// Package arrayiface says what an array is: the type of its elements, its shape and its strides, and reads and writes
// how the array-sharing protocols spell these: NumPy's __array_interface__, __cuda_array_interface__, the buffer
// protocol of PEP 3118 and DLPack; and element types as Arrow does.
//
// Everything here is a plain value. Nothing is allocated, moved or dereferenced, so any input, however wrong, gives a
// value or an [Error] and touches no memory.
//
// Sizes, strides and offsets count bytes unless a comment says otherwise. Elements are little-endian: so is every
// platform that hamr supports.
package arrayiface
