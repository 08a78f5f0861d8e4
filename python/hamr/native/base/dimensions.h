/* Shapes and strides that Python gives. */
#ifndef HAMR_BASE_DIMENSIONS_H
#define HAMR_BASE_DIMENSIONS_H

#include "base/python.h"

int read_dimensions(PyObject *tuple, const char *name, int64_t *values); /* how many, HAMR_MAX_DIMENSIONS at most; -1: an error, which names them so */

#endif
