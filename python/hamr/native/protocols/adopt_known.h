/* Sharing an object in one call. */
#pragma once

#include "base/python.h"

int adopt_known_setup(void);
PyObject *adopt_plain(PyTypeObject *type, PyObject *object); /* on the default stream; None if more has to be asked */
PyObject *adopt_asking(PyTypeObject *type, PyObject *object); /* by the dispatcher; None until it is imported */
int is_plain_exporter(PyObject *object); /* of a type that adopt_plain shares by the buffer protocol */
extern PyMethodDef adopt_known_functions[];
