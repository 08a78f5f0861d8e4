/* Objects of the extension's own types. */
#pragma once

#include "base/python.h"

/* Makes *type, once, and adds it to the module by the last part of its name. base may be NULL. 0, or -1 with an
 * exception. */
int type_add(PyObject *module, PyTypeObject **type, PyType_Spec *spec, PyTypeObject *base);
void *type_allocate(PyTypeObject *type);
void type_free(PyObject *self);
