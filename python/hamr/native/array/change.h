/* Changes of contents, one after the other. */
#pragma once

#include "array/array.h"
#include "array/result.h"
#include "base/python.h"
#include "hamr/functions.h"
#include "memory/block.h"

typedef struct Change Change;

/* What is to be done, and what it needs of Python's memory, made before it begins. */
struct Change {
    hamr_error *(*apply)(const hamr_functions *functions, Change *change, hamr_array *array, hamr_array *becomes);
    Array *other;           /* an argument, pinned, or NULL */
    int64_t numbers[4];     /* further arguments, in their order */
    int32_t ndim;
    int64_t shape[HAMR_MAX_DIMENSIONS];
    const Py_buffer *bytes; /* elements in C order, where these are written and nothing else changes */
    int32_t done;           /* that was so simple */
    Array *source;
    Block *spare;           /* for new memory */
    uint32_t flags;         /* more of the source's */
    hamr_error *error;
    Result result;
};

PyObject *change_make(PyObject *object, Change *change); /* None, or NULL with an exception */

/* Of the arguments of Python's functions, each 0, or -1 with an exception. */
int change_array(PyObject *array);
int change_other(Change *change, PyObject *other); /* None is none */
int change_number(int64_t *into, PyObject *value);
int change_shape(Change *change, PyObject *shape);

/* Sets every element to the single one of value. None, or NULL with an exception. */
PyObject *change_fill(PyObject *object, Array *value);
/* Sets every element from other, broadcast. None, or NULL with an exception. */
PyObject *change_write(PyObject *object, Array *other);
/* Sets a device's elements from a plain array of the same kind: 1. 0: it is none; -1 with an exception. */
int change_write_bytes(PyObject *object, PyObject *exporter);
