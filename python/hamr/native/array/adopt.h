/* New arrays, described by a draft, whose memory the core is told of. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"
#include "memory/owner.h"
#include "plain/layout.h"

/* Memory of CUDA's without a device gets the current one. */
void place_array(hamr_array *array, const hamr_devices *devices);
PyObject *draft_finish(PyTypeObject *type, Draft *draft, Owner *owner); /* what the core knows now; takes over owner */
PyObject *draft_adopt_host(PyTypeObject *type, Draft *draft, Owner *owner); /* takes over owner */
PyObject *draft_adopt_device(PyTypeObject *type, Draft *draft, Owner *owner, uint64_t producer); /* takes over owner */
PyObject *draft_adopt_pinned(PyTypeObject *type, Draft *draft, Owner *owner, int allocator); /* takes over owner */
PyObject *draft_adopt_mapped(PyTypeObject *type, Draft *draft, Owner *owner); /* takes over owner */
PyObject *adopt_cuda_memory(PyTypeObject *type, Draft *draft, Owner *owner, uint64_t producer); /* takes over owner */
