#include "native.h"

#include <string.h>

/* In the order of arrayiface.ElementType; a test holds the two together. */
static const ElementFacts facts[] = {
    {NULL, NULL, 0, 0},
    {"|b1", "?", 1, 6},
    {"|i1", "b", 1, 0},
    {"<i2", "h", 2, 0},
    {"<i4", "i", 4, 0},
    {"<i8", "q", 8, 0},
    {"|u1", "B", 1, 1},
    {"<u2", "H", 2, 1},
    {"<u4", "I", 4, 1},
    {"<u8", "Q", 8, 1},
    {"<f2", "e", 2, 2},
    {"<f4", "f", 4, 2},
    {"<f8", "d", 8, 2},
    {"<c8", "Zf", 8, 5},
    {"<c16", "Zd", 16, 5},
    {"<V2", NULL, 2, 4},
    {"|V1", NULL, 1, 10},
    {"|V1", NULL, 1, 12},
    {"|V1", NULL, 1, 7},
    {"|V1", NULL, 1, 8},
    {"|V1", NULL, 1, 9},
    {"|V1", NULL, 1, 11},
    {"|V1", NULL, 1, 13},
    {"|V1", NULL, 1, 14},
};

const ElementFacts *element_facts(int32_t element) {
    if (element <= Invalid || element >= (int32_t)(sizeof facts / sizeof *facts)) return NULL;
    return &facts[element];
}

/* The typestr, and the name of types that share one. */
const char *element_label(int32_t element) {
    static const char *const names[] = {
        "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3",
        "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
    };
    const ElementFacts *found = element_facts(element);
    if (!found) return "?";
    return element > Complex128 ? names[element - Complex128 - 1] : found->typestr;
}

int32_t element_from_dlpack(unsigned code, unsigned bits, unsigned lanes) {
    for (int32_t i = Bool; i < (int32_t)(sizeof facts / sizeof *facts); i++)
        if (facts[i].code == code && (unsigned)facts[i].size * 8 == bits && lanes == 1) return i;
    return Invalid;
}

static int32_t signed_of(size_t size) {
    return size == 1 ? Int8 : size == 2 ? Int16 : size == 4 ? Int32 : Int64;
}

int32_t element_from_format(const char *format, Py_ssize_t itemsize) {
    int32_t element = Invalid;
    if (!format || !*format) format = "B";
    /* The order of one byte means nothing. */
    if (*format == '@' || *format == '=' || *format == '<' || (itemsize == 1 && (*format == '>' || *format == '!'))) format++;
    if (format[0] == 'Z' && format[1] && !format[2])
        element = format[1] == 'f' ? Complex64 : format[1] == 'd' ? Complex128 : Invalid;
    else if (format[0] && !format[1]) {
        switch (format[0]) {
        case '?': element = Bool; break;
        case 'b': element = Int8; break;
        case 'h': element = Int16; break;
        case 'i': element = Int32; break;
        case 'q': element = Int64; break;
        case 'l': case 'n': element = signed_of((size_t)itemsize); break;
        case 'c': case 'B': element = Uint8; break;
        case 'H': element = Uint16; break;
        case 'I': element = Uint32; break;
        case 'Q': element = Uint64; break;
        case 'L': case 'N': element = signed_of((size_t)itemsize) + (Uint8 - Int8); break;
        case 'e': element = Float16; break;
        case 'f': element = Float32; break;
        case 'd': element = Float64; break;
        case 'F': element = Complex64; break;
        case 'D': element = Complex128; break;
        }
    }
    if (element && facts[element].size != itemsize) return Invalid;
    return element;
}

static int from_integer(PyObject *value, unsigned char bytes[16], int32_t *element) {
    int overflow;
    long long wide = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (wide == -1 && PyErr_Occurred()) return -1;
    if (!overflow) {
        memcpy(bytes, &wide, sizeof wide);
        *element = Int64;
        return 1;
    }
    unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(value) : (unsigned long long)-1;
    if (large == (unsigned long long)-1 && (overflow < 0 || PyErr_Occurred())) {
        if (overflow < 0 || PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "value %R does not fit any integer type: accepted are -2**63 ... 2**64-1", value);
        return -1;
    }
    memcpy(bytes, &large, sizeof large);
    *element = Uint64;
    return 1;
}

/* 1: bytes and element are set; 0: value is no Python number; -1: an error. */
int element_from_scalar(PyObject *value, unsigned char bytes[16], int32_t *element) {
    if (PyBool_Check(value)) {
        bytes[0] = value == Py_True;
        *element = Bool;
        return 1;
    }
    if (PyFloat_Check(value)) {
        double number = PyFloat_AsDouble(value);
        memcpy(bytes, &number, sizeof number);
        *element = Float64;
        return 1;
    }
    if (PyLong_Check(value)) return from_integer(value, bytes, element);
    if (PyComplex_Check(value)) {
        double parts[2] = {PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value)};
        memcpy(bytes, parts, sizeof parts);
        *element = Complex128;
        return 1;
    }
    return 0;
}

int64_t array_count(const hamr_array *array) {
    int64_t count = 1;
    for (int i = 0; i < array->ndim; i++) count *= array->shape[i];
    return count;
}

/* Dimensions of size 1, and all of them in an empty array, have strides that
 * mean nothing. */
int array_contiguous(const hamr_array *array, int fortran) {
    const ElementFacts *f = element_facts(array->element);
    int64_t expected = f ? f->size : 0;
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] == 0) return 1;
    for (int k = 0; k < array->ndim; k++) {
        int i = fortran ? k : array->ndim - 1 - k;
        if (array->shape[i] == 1) continue;
        if (array->strides[i] != expected) return 0;
        expected *= array->shape[i];
    }
    return 1;
}

/* The bytes that the elements touch, relative to element zero; 0 if there are
 * none, or too many. */
int array_span(const hamr_array *array, int64_t *low, int64_t *high) {
    int64_t step, bytes = element_facts(array->element)->size;
    *low = 0;
    *high = bytes;
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] < 1 || __builtin_mul_overflow(bytes, array->shape[i], &bytes) || __builtin_mul_overflow(array->shape[i] - 1, array->strides[i], &step)) return 0;
        int64_t *end = step < 0 ? low : high;
        if (__builtin_add_overflow(*end, step, end)) return 0;
    }
    return 1;
}
