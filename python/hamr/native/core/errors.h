/* The core's errors as Python's. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"

int core_raise_as(PyObject *classes); /* a tuple, in the order of hamr_error_kind; 0, or -1 with an exception */
int core_raise_of_store_as(PyObject *classes); /* the same, from HAMR_ERROR_NOT_FOUND on */
int core_raise(hamr_error *error);   /* sets the exception, frees error; -1 */
PyObject *core_failed(hamr_error *error); /* the same, unless error is NULL; NULL */
/* Reports the error of a destructor, which cannot raise. where is named beside it, or NULL. error may be NULL. */
void core_report(hamr_error *error, PyObject *where);
hamr_error *core_interruption(void); /* the exception that is set, for core_raise; it is cleared. NULL: no memory */
PyObject *core_freed(const char *message); /* raises FreedBuffer; NULL */
int core_forked(void);               /* raises ForkError; -1 */
int core_forked_before_writing(void); /* likewise: a device was to write to the memory */
int core_forked_within(void);        /* the same, in a call that a handler of a signal has forked in */
