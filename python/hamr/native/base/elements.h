/* Element types by the names that Python's protocols have for them. */
#pragma once

#include "base/python.h"

const char *element_label(int32_t element); /* for error messages */
int32_t element_from_format(const char *format, Py_ssize_t itemsize); /* 0: refused */
int element_from_scalar(PyObject *value, unsigned char bytes[16], int32_t *element);
