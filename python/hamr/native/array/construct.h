/* Buffer(…), as it is called most. */
#pragma once

#include "base/python.h"

PyObject *array_construct(PyTypeObject *type, PyObject *arguments, PyObject *names); /* the type's slot */
extern PyObject *blocks_entered; /* a list, empty as long as there was no block that says where buffers are made */
int construct_setup(PyObject *module); /* 0, or -1 with an exception */
extern PyMethodDef construct_functions[];
