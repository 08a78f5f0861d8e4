#include "base/elements.h"

#include <stdbool.h>
#include <string.h>

#include "base/python.h"

/* One with "" for a format that does not exist. */
#define TEXT(format) (sizeof format > 1 ? format : NULL)
#define FACTS(type, number, name, size, kind, dlpack, bits, typestr, format, arrow) \
    [type] = {name, typestr, TEXT(format), TEXT(arrow), size, dlpack},

static const ElementFacts facts[HAMR_ELEMENT_TYPE_COUNT] = {HAMR_ELEMENT_TYPES(FACTS)};

#define SIZE(type, number, name, size, ...) SIZE_##type = size,
enum { HAMR_ELEMENT_TYPES(SIZE) };
#define CHECK(type, c_type) _Static_assert(SIZE_##type == sizeof(c_type), "the size of " #type);
HAMR_C_TYPES(CHECK)

const ElementFacts *element_facts(int32_t element) {
    if (element <= HAMR_INVALID || element >= HAMR_ELEMENT_TYPE_COUNT) return NULL;
    return &facts[element];
}

/* The typestr, or the name where others may have the same. */
const char *element_label(int32_t element) {
    const ElementFacts *found = element_facts(element);
    return !found ? "?" : found->format ? found->typestr : found->name;
}

int32_t element_from_dlpack(unsigned code, unsigned bits, unsigned lanes) {
    for (int32_t i = HAMR_INVALID + 1; i < HAMR_ELEMENT_TYPE_COUNT; i++)
        if (facts[i].code == code && (unsigned)facts[i].size * 8 == bits && lanes == 1) return i;
    return HAMR_INVALID;
}

static int32_t signed_of(size_t size) {
    return size == 1 ? HAMR_INT8 : size == 2 ? HAMR_INT16 : size == 4 ? HAMR_INT32 : HAMR_INT64;
}

/* By the code of one character, and by the one after Z. */
static unsigned char by_code[128], by_part[128];

static void read_formats(void) {
    for (int32_t i = HAMR_INVALID + 1; i < HAMR_ELEMENT_TYPE_COUNT; i++) {
        const char *format = facts[i].format;
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
    if (*format == '@' || *format == '=' || *format == '<' || (itemsize == 1 && (*format == '>' || *format == '!'))) format++;
    unsigned char first = (unsigned char)format[0], second = first ? (unsigned char)format[1] : 0;
    if (first >= 128 || second >= 128) return HAMR_INVALID;
    if (!second) {
        if (first == 'l' || first == 'n') element = signed_of((size_t)itemsize);
        else if (first == 'L' || first == 'N') element = signed_of((size_t)itemsize) + (HAMR_UINT8 - HAMR_INT8);
        else element = by_code[first];
    } else if (first == 'Z' && !format[2]) element = by_part[second];
    if (element && facts[element].size != itemsize) return HAMR_INVALID;
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
            PyErr_Format(PyExc_ValueError, "value %R does not fit any integer type: accepted are -2**63 ... 2**64-1", value);
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

/* Too large a shape wraps around; the core refuses it. */
void array_c_strides(hamr_array *array) {
    uint64_t step = (uint64_t)element_facts(array->element)->size;
    for (int i = array->ndim - 1; i >= 0; i--) {
        array->strides[i] = (int64_t)step;
        if (array->shape[i] > 1) step *= (uint64_t)array->shape[i];
    }
}

/* element_table(): (name, typestr, format, size, DLPack's code) by element number. */
static PyObject *table(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int32_t i = 1; list && element_facts(i); i++) {
        const ElementFacts *f = element_facts(i);
        PyObject *row = Py_BuildValue("(sszii)", f->name, f->typestr, f->format, f->size, f->code);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyMethodDef element_functions[] = {
    {"element_table", table, METH_NOARGS, "element_table(): (name, typestr, format, size, DLPack's code) of each element type."},
    {NULL, NULL, 0, NULL},
};
