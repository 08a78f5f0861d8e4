/* Temporaries that the core keeps for whoever asks next. */
#ifndef HAMR_ARRAY_CACHED_H
#define HAMR_ARRAY_CACHED_H

#include "base/python.h"

/* Methods of the type, by the names that they have there. */
PyObject *array_method_cache(PyObject *object, PyObject *on);
PyObject *array_method_changed(PyObject *object, PyObject *unused);

#endif
