/* Objects of the extension's own types. */
#ifndef HAMR_BASE_HEAP_TYPE_H
#define HAMR_BASE_HEAP_TYPE_H

#include "base/python.h"

void *type_allocate(PyTypeObject *type);
void type_free(PyObject *self);

#endif
