/* What other processes open elements by: the base of hamr.SharedHandle. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"

/* Takes over the descriptors. lent is the copy of the core that has lent memory for it, or 0. */
PyObject *shared_handle_new(PyTypeObject *type, const hamr_sharing *sharing, uint64_t lent);
int is_shared_handle_type(PyObject *type); /* or 0, with an exception */
int shared_handle_setup(PyObject *module); /* 0, or -1 with an exception */
