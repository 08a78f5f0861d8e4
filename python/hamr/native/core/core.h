/* The connection with the Go library. */
#ifndef HAMR_CORE_CORE_H
#define HAMR_CORE_CORE_H

#include "base/python.h"
#include "hamr_abi.h"

extern uint64_t core_generation;
int core_load(void);                 /* 0, or -1 with an exception */
const hamr_functions *core_functions(void);
PyObject *core_function(PyObject *name); /* one that gopy generated; NULL, without an exception: the core is not loaded */
int core_free_directly(int32_t allocator, uint64_t base);
void core_forget(void);              /* after a fork: the copy was the parent's */
extern PyMethodDef core_methods[];

#endif
