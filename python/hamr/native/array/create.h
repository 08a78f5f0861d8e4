/* New arrays from what Python says of them. */
#pragma once

#include "base/python.h"
#include "plain/layout.h"

/* Takes the memory. The core must be loaded. 0, or -1 with an exception. */
int create_draft(Draft *draft, void *value, int32_t value_element);
PyObject *array_of_number(PyObject *value); /* as an array without dimensions, or None; NULL with an exception */
extern PyMethodDef create_functions[];
