/* The element types, as hamr/types.h numbers them, and where an array has its elements. */
#ifndef HAMR_BASE_ELEMENTS_H
#define HAMR_BASE_ELEMENTS_H

#include "base/python.h"
#include "hamr/functions.h"

typedef struct {
    const char *name;
    const char *typestr;
    const char *format; /* PEP 3118; NULL if there is none */
    const char *arrow;  /* NULL if there is none */
    int size;
    unsigned char code; /* DLPack's; its bits are 8 * size */
} ElementFacts;
int32_t element_from_dlpack(unsigned code, unsigned bits, unsigned lanes); /* 0: refused */
const ElementFacts *element_facts(int32_t element);
const char *element_label(int32_t element); /* for error messages */
int32_t element_from_format(const char *format, Py_ssize_t itemsize); /* 0: refused */
int element_from_scalar(PyObject *value, unsigned char bytes[16], int32_t *element);
int array_contiguous(const hamr_array *array, int fortran);
int64_t array_count(const hamr_array *array);
int array_span(const hamr_array *array, int64_t *low, int64_t *high); /* the bytes that elements touch, from element zero on; 0: none, or too many */
void array_c_strides(hamr_array *array); /* makes the strides those of C order */
extern PyMethodDef element_functions[];

#endif
