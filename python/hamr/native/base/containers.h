/* Containers of Python's that are filled one item after the other. */
#pragma once

#include "base/python.h"

/* Each takes over item, which is NULL with an exception; then, and where it cannot be put, there is no container. */
void list_put(PyObject **list, PyObject *item); /* at its end */
void tuple_put(PyObject **tuple, Py_ssize_t at, PyObject *item);
void dict_put(PyObject **dictionary, const char *key, PyObject *item);
void set_put(PyObject **set, PyObject *item);

/* Makes the names what the texts are, once: 0, or -1 with an exception. */
int intern_names(PyObject **names, const char *const *texts, int count);
