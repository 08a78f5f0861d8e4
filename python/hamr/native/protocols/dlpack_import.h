/* Tensors of other libraries as arrays. */
#pragma once

#include "base/python.h"
#include "plain/dlpack.h"

typedef struct {
    PyTypeObject *type;
    uint64_t stream;   /* of the new array */
    uint64_t producer; /* the stream that the tensor's work is on; 0: there is none to wait for */
    int32_t transfer;
    int immutable;     /* nobody may write, whatever the tensor says */
    int never_copied;  /* BufferError for a tensor that is a copy */
} Adoption;
/* Takes over tensor. */
PyObject *dlpack_adopt(PyTypeObject *type, DLManagedTensorVersioned *tensor, uint64_t stream, int32_t transfer,
                       uint64_t producer);
PyObject *dlpack_adopt_tensor(const Adoption *adoption, DLManagedTensorVersioned *tensor); /* the same */
PyObject *dlpack_adopt_capsule(const Adoption *adoption, PyObject *capsule); /* renames it, unless it fails */
