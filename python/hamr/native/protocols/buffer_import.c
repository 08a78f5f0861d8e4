/* The buffer protocol of other libraries, PEP 3118. */
#include "protocols/buffer_import.h"

#include <string.h>

#include "array/adopt.h"
#include "array/array.h"
#include "base/elements.h"
#include "base/python.h"
#include "memory/owner.h"
#include "memory/view.h"
#include "plain/layout.h"

_Static_assert(HAMR_MAX_DIMENSIONS == 64, "view_problem says 64");

/* Why a view cannot be an array, whatever its elements are; NULL if it can. */
static const char *view_problem(const Py_buffer *view) {
    if (view->ndim < 0 || view->ndim > HAMR_MAX_DIMENSIONS) return "its number of dimensions is not 0 ... 64";
    if (view->suboffsets)
        for (int i = 0; i < view->ndim; i++)
            if (view->suboffsets[i] >= 0) return "its rows lie in separate pieces of memory (suboffsets)";
    if (!view->buf && view->len > 0) return "it has no address";
    if (!view->shape) return view->ndim > 1 ? "it has dimensions and no shape" : NULL;
    Py_ssize_t bytes = view->itemsize;
    for (int i = 0; i < view->ndim; i++)
        if (view->shape[i] == 0) bytes = 0;
    for (int i = 0; i < view->ndim; i++)
        if (__builtin_mul_overflow(bytes, view->shape[i], &bytes)) return "its shape is too large";
    return bytes == view->len ? NULL : "its shape and its length in bytes differ";
}

int buffer_read(PyObject *object, Draft *draft, Py_buffer **exported) {
    hamr_array *array = &draft->array;
    if (!PyObject_CheckBuffer(object)) return 0;
    Py_buffer *view = PyMem_Malloc(sizeof *view);
    if (!view) return PyErr_NoMemory(), -1;
    if (PyObject_GetBuffer(object, view, PyBUF_FULL_RO) < 0) {
        PyMem_Free(view);
        if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
            !PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    array->element = element_from_format(view->format, view->itemsize);
    const char *problem = view_problem(view);
    if (problem || !array->element) {
        if (problem) PyErr_Format(PyExc_ValueError, "%R cannot be shared: %s", (PyObject *)Py_TYPE(object), problem);
        PyBuffer_Release(view);
        PyMem_Free(view);
        return problem ? -1 : 0;
    }
    array->ndim = view->ndim;
    array->device = HAMR_HOST_DEVICE;
    array->allocator = HAMR_ALLOCATOR_MALLOC;
    array->flags = HAMR_HOST_REACHABLE | (view->readonly ? HAMR_READ_ONLY : 0);
    array->pointer = (uint64_t)(uintptr_t)view->buf;
    for (int i = 0; i < view->ndim; i++) array->shape[i] = view->shape ? view->shape[i] : view->len / view->itemsize;
    if (view->strides) memcpy(array->strides, view->strides, (size_t)view->ndim * sizeof *array->strides);
    else array_c_strides(array);
    *exported = view_behind(view, array, object);
    return 1;
}

/* adopt_buffer(type, object, stream, transfer): share what object exports by the
 * buffer protocol. None if it exports nothing, or elements that are not ours. */
PyObject *adopt_buffer(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Draft draft;
    Py_buffer *view;
    if (arity(n, 4, "adopt_buffer") < 0 || !is_array_type(arguments[0])) return NULL;
    draft_start(&draft);
    draft.array.stream = PyLong_AsUnsignedLongLong(arguments[2]);
    draft.array.transfer = (int32_t)PyLong_AsLong(arguments[3]);
    if ((draft.array.stream == (uint64_t)-1 || draft.array.transfer == -1) && PyErr_Occurred()) return NULL;
    int read = buffer_read(arguments[1], &draft, &view);
    if (read < 0) return NULL;
    if (!read) Py_RETURN_NONE;
    Owner *owner = owner_new(NULL, view);
    if (!owner) {
        PyBuffer_Release(view);
        PyMem_Free(view);
        return NULL;
    }
    return draft_adopt_host((PyTypeObject *)arguments[0], &draft, owner);
}

PyMethodDef buffer_import_functions[] = {
    {"adopt_buffer", FAST(adopt_buffer), METH_FASTCALL,
     "adopt_buffer(type, object, stream, transfer): share by the buffer protocol."},
    {NULL, NULL, 0, NULL},
};
