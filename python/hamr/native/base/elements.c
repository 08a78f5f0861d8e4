#include "base/elements.h"

#include <stdbool.h>
#include <string.h>

#include "base/python.h"
#include "plain/layout.h"

#define SIZE(type, number, name, size, ...) SIZE_##type = size,
enum { HAMR_ELEMENT_TYPES(SIZE) };
#define CHECK(type, c_type) _Static_assert(SIZE_##type == sizeof(c_type), "the size of " #type);
HAMR_C_TYPES(CHECK)

/* The typestr, or the name where others may have the same. */
const char *element_label(int32_t element) {
    const ElementFacts *found = element_facts(element);
    return !found ? "?" : found->format ? found->typestr : found->name;
}

static int32_t signed_of(size_t size) {
    return size == 1 ? HAMR_INT8 : size == 2 ? HAMR_INT16 : size == 4 ? HAMR_INT32 : HAMR_INT64;
}

/* By the code of one character, and by the one after Z. */
static unsigned char by_code[128], by_part[128];

static void read_formats(void) {
    for (int32_t i = HAMR_INVALID + 1; i < HAMR_ELEMENT_TYPE_COUNT; i++) {
        const char *format = element_facts(i)->format;
        size_t length = format ? strlen(format) : 0;
        if (length == 1) by_code[(unsigned char)format[0]] = (unsigned char)i;
        if (length == 2 && format[0] == 'Z') by_part[(unsigned char)format[1]] = (unsigned char)i;
    }
    by_code['c'] = HAMR_UINT8;
    by_code['q'] = HAMR_INT64;
    by_code['Q'] = HAMR_UINT64;
    by_code['F'] = HAMR_COMPLEX64; /* Python 3.14's struct */
    by_code['D'] = HAMR_COMPLEX128;
}

int32_t element_from_format(const char *format, Py_ssize_t itemsize) {
    int32_t element = HAMR_INVALID;
    if (!by_code['c']) read_formats();
    if (!format || !*format) format = "B";
    /* The order of one byte means nothing. */
    if (*format == '@' || *format == '=' || *format == '<' || (itemsize == 1 && (*format == '>' || *format == '!')))
        format++;
    unsigned char first = (unsigned char)format[0], second = first ? (unsigned char)format[1] : 0;
    if (first >= 128 || second >= 128) return HAMR_INVALID;
    if (!second) {
        if (first == 'l' || first == 'n') element = signed_of((size_t)itemsize);
        else if (first == 'L' || first == 'N') element = signed_of((size_t)itemsize) + (HAMR_UINT8 - HAMR_INT8);
        else element = by_code[first];
    } else if (first == 'Z' && !format[2]) element = by_part[second];
    if (element_size(element) != itemsize) return HAMR_INVALID;
    return element;
}

static int from_integer(PyObject *value, unsigned char bytes[16], int32_t *element) {
    int overflow;
    long long wide = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (wide == -1 && PyErr_Occurred()) return -1;
    if (!overflow) {
        memcpy(bytes, &wide, sizeof wide);
        *element = HAMR_INT64;
        return 1;
    }
    unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(value) : (unsigned long long)-1;
    if (large == (unsigned long long)-1 && (overflow < 0 || PyErr_Occurred())) {
        if (overflow < 0 || PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "value %R does not fit any integer type: accepted are -2**63 ... 2**64-1",
                         value);
        return -1;
    }
    memcpy(bytes, &large, sizeof large);
    *element = HAMR_UINT64;
    return 1;
}

/* 1: bytes and element are set; 0: value is no Python number; -1: an error. */
int element_from_scalar(PyObject *value, unsigned char bytes[16], int32_t *element) {
    if (PyBool_Check(value)) {
        bytes[0] = value == Py_True;
        *element = HAMR_BOOL;
        return 1;
    }
    if (PyFloat_Check(value)) {
        double number = PyFloat_AsDouble(value);
        memcpy(bytes, &number, sizeof number);
        *element = HAMR_FLOAT64;
        return 1;
    }
    if (PyLong_Check(value)) return from_integer(value, bytes, element);
    if (PyComplex_Check(value)) {
        double parts[2] = {PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value)};
        memcpy(bytes, parts, sizeof parts);
        *element = HAMR_COMPLEX128;
        return 1;
    }
    return 0;
}
