/* What exports an adopted buffer, and the collector. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"

int view_may_be_seen(const Py_buffer *view); /* by the collector */
/* Returns object's view, or another one in its place that the collector may see. */
Py_buffer *view_behind(Py_buffer *view, const hamr_array *array, const PyObject *object);
