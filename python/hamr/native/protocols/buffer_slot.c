#include "protocols/buffer_slot.h"

#include "array/access.h"
#include "array/array.h"
#include "array/snapshot.h"
#include "base/elements.h"
#include "base/python.h"
#include "memory/block.h"
#include "plain/layout.h"
#include "plain/memory.h"

static int check_request(const hamr_array *array, const ElementFacts *facts, int flags) {
    if (!(array->flags & HAMR_HOST_REACHABLE))
        return RAISE(PyExc_BufferError, "the host does not reach this memory: get_host_accessible() brings it there");
    if (!facts || (!facts->format && (flags & PyBUF_FORMAT)))
        return RAISE(PyExc_BufferError, "element type %s has no format in the buffer protocol",
                     element_label(array->element));
    if ((flags & PyBUF_WRITABLE) && (array->flags & HAMR_READ_ONLY))
        return RAISE(PyExc_BufferError, "the buffer is read-only");
    if (((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || !(flags & PyBUF_STRIDES & ~PyBUF_ND)) &&
        !array_contiguous(array, 0))
        return RAISE(PyExc_BufferError, "the buffer's elements do not lie in C order: copy() makes a buffer whose do");
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !array_contiguous(array, 1))
        return RAISE(PyExc_BufferError, "the buffer's elements do not lie in Fortran order");
    if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !array_contiguous(array, 0) &&
        !array_contiguous(array, 1))
        return RAISE(PyExc_BufferError, "the buffer's elements have gaps between them: copy() makes a buffer without");
    return 0;
}

/* A buffer that can change exports a snapshot, which keeps memory, shape and
 * strides as they are for as long as the view is used. */
/* Never NULL: NumPy 1.24 takes that for no array at all, though there be no elements. */
static void *address_of(const hamr_array *array) {
    static char nothing[1];
    return array->pointer ? (void *)(uintptr_t)array->pointer : nothing;
}

int array_getbuffer(PyObject *object, Py_buffer *view, int flags) {
    Array *self = (Array *)object;
    view->obj = NULL;
    if (array_may_be_pending(self) && (self->array.flags & HAMR_HOST_REACHABLE)) {
        /* A device may still be writing it. */
        if (!(self = array_settled(self))) return -1;
    } else if (!self->fixed) {
        if (!(self = (Array *)array_snapshot(self, array_type))) return -1;
    } else if (self->closed) {
        array_freed(self);
        return -1;
    } else {
        Py_INCREF(object);
    }
    hamr_array *array = &self->array;
    const ElementFacts *facts = element_facts(array->element);
    if (check_request(array, facts, flags) < 0) {
        Py_DECREF(self);
        return -1;
    }
    self->exports++;
    if (self->block) memory_tell_address(&self->block->memory);
    view->buf = address_of(array);
    view->obj = (PyObject *)self;
    view->len = (Py_ssize_t)(array_count(array) * facts->size);
    view->itemsize = facts->size;
    view->readonly = (array->flags & HAMR_READ_ONLY) != 0;
    view->ndim = array->ndim;
    view->format = (flags & PyBUF_FORMAT) ? (char *)facts->format : NULL;
    int dimensions = array->ndim > 0; /* without any, both must be NULL */
    view->shape = dimensions && (flags & PyBUF_ND) ? (Py_ssize_t *)array->shape : NULL;
    view->strides = dimensions && (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? (Py_ssize_t *)array->strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    if (!(flags & PyBUF_ND)) view->ndim = 1;
    return 0;
}

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "hamr needs a 64-bit Python");

static PyObject *describe(const hamr_array *array) {
    const ElementFacts *facts = element_facts(array->element);
    if (!facts || !facts->format)
        return PyErr_Format(PyExc_AttributeError, "__array_interface__: element type %s has no typestr of its own",
                            element_label(array->element));
    if (!(array->flags & HAMR_HOST_REACHABLE))
        return PyErr_Format(PyExc_AttributeError,
                            "__array_interface__: the host does not reach this memory; get_host_accessible() brings "
                            "it there");
    PyObject *shape, *strides;
    if (array_layout(array, &shape, &strides) < 0) return NULL;
    return Py_BuildValue("{s:N,s:s,s:(KO),s:N,s:i}", "shape", shape, "typestr", facts->typestr,
                         "data", (unsigned long long)(uintptr_t)address_of(array), (array->flags & HAMR_READ_ONLY)
                         ? Py_True : Py_False,
                         "strides", strides, "version", 3);
}

PyObject *array_interface(PyObject *object, void *Py_UNUSED(closure)) {
    /* A snapshot, since making a tuple may run finalisers, which may change the array. */
    Array *self = (Array *)object;
    int settle = array_may_be_pending(self) && (self->array.flags & HAMR_HOST_REACHABLE);
    self = settle ? array_settled(self) : (Array *)array_snapshot(self, array_type);
    if (!self) return NULL;
    Block *block = self->block; /* a finaliser may close a handle that is its own */
    Py_XINCREF((PyObject *)block);
    PyObject *interface = describe(&self->array);
    if (block) memory_tell_address(&block->memory);
    /* Whoever was told no address needs nothing kept. */
    if (interface && array_keep((Array *)object, block) < 0) Py_CLEAR(interface);
    Py_XDECREF((PyObject *)block);
    Py_DECREF(self);
    return interface;
}
