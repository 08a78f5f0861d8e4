/* Shapes and strides that Python gives. */
#pragma once

#include "base/python.h"

/* Returns how many there are, at most HAMR_MAX_DIMENSIONS; -1 with an exception that uses name. */
int read_dimensions(PyObject *tuple, const char *name, int64_t *values);
