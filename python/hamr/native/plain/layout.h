/* The element types, as hamr/types.h numbers them, and where an array has its elements. */
#pragma once

#include <stddef.h>

#include "hamr/functions.h"

typedef struct {
    const char *name;
    const char *typestr;
    const char *format; /* PEP 3118; NULL if there is none */
    const char *arrow;  /* NULL if there is none */
    int size;
    unsigned char code; /* DLPack's; its bits are 8 * size */
} ElementFacts;

extern const ElementFacts element_table[HAMR_ELEMENT_TYPE_COUNT]; /* by its number */

/* NULL: none such. What each call to the package asks is inline. */
static inline const ElementFacts *element_facts(int32_t element) {
    return element > HAMR_INVALID && element < HAMR_ELEMENT_TYPE_COUNT ? &element_table[element] : NULL;
}

static inline int64_t element_size(int32_t element) { /* 0: none such */
    return element > HAMR_INVALID && element < HAMR_ELEMENT_TYPE_COUNT ? element_table[element].size : 0;
}

int32_t element_from_dlpack(unsigned code, unsigned bits, unsigned lanes); /* 0: refused */

/* A description that the core may fill. */
typedef struct {
    hamr_array array;
    int64_t dimensions[2 * HAMR_MAX_DIMENSIONS];
} Draft;

void draft_start(Draft *draft);

/* The rules of arrayiface.NewLayout: the bytes of an array, each size of 0 counted as 1, and what its strides reach
 * fit in 63 bits. */
static inline int64_t array_count(const hamr_array *array) {
    int64_t count = 1;
    for (int i = 0; i < array->ndim; i++) count *= array->shape[i];
    return count;
}

int array_contiguous(const hamr_array *array, int fortran);
/* The bytes that elements touch, from element zero on: 1. 0: there are none. -1: the rules refuse the array. */
int array_span(const hamr_array *array, int64_t *low, int64_t *high);
/* Sets base, size and capacity by the pointer and what elements touch: 1. 0: array_span says that there are none. */
int array_bounds(hamr_array *array);
/* Makes the strides those of C order and returns how many bytes there are, each size of 0 counted as 1. Below zero: ~i,
 * where the bytes of dimension i do not fit; what is before it is not set. */
int64_t array_c_strides(hamr_array *array);
