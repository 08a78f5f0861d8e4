/* A module of kernels that a user has brought, of one backend's. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"

enum { BACKEND_NAME = 16 };

int is_code(PyObject *object);
const char *code_backend(PyObject *code);
int code_is_cuda(PyObject *code);
/* The core's free frees the result. NULL with an exception. */
hamr_kernel *code_kernel(PyObject *code, PyObject *name, int32_t device);
int code_usable(PyObject *code, const hamr_functions **functions); /* 0, or -1: ForkError in a child */
int code_setup(PyObject *module); /* 0, or -1 with an exception */
