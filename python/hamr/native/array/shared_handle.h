/* What other processes open elements by: the base of hamr.SharedHandle. */
#ifndef HAMR_ARRAY_SHARED_HANDLE_H
#define HAMR_ARRAY_SHARED_HANDLE_H

#include "base/python.h"
#include "hamr/functions.h"

PyObject *shared_handle_new(PyTypeObject *type, const hamr_sharing *sharing, uint64_t lent); /* takes the descriptors over. lent: the copy of the core that has lent memory by it, or 0 */
int is_shared_handle_type(PyObject *type); /* or 0, with an exception */
int shared_handle_setup(PyObject *module); /* 0, or -1 with an exception */

#endif
