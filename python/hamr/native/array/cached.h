/* Temporaries that the core keeps for whoever asks next. */
#pragma once

#include "base/python.h"

/* Methods of the type, by the names that they have there. */
PyObject *array_method_cache(PyObject *object, PyObject *on);
PyObject *array_method_changed(PyObject *object, PyObject *unused);
