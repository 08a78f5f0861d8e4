/* The connection with the Go library. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"

extern uint64_t core_generation;
int core_load(void);                 /* 0, or -1 with an exception */
const hamr_functions *core_functions(void);
int core_free_directly(int32_t allocator, uint64_t base);
void core_forget(void);              /* after a fork: the copy was the parent's */
int core_setup(PyObject *module); /* 0, or -1 with an exception */
extern PyMethodDef core_methods[];
