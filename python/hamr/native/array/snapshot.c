#include "array/snapshot.h"

#include <string.h>

#include "array/array.h"
#include "base/python.h"
#include "core/core.h"
#include "memory/block.h"
#include "memory/stream_life.h"

PyObject *array_snapshot(Array *self, PyTypeObject *type) {
    Array *copy = array_new(type);
    if (!copy) return NULL;
    /* Only now: making an object may run finalisers, which may close self. */
    if (self->closed) {
        Py_DECREF(copy);
        return array_freed(self);
    }
    copy->fixed = 1;
    copy->temporary = self->temporary;
    copy->own_copy = self->own_copy;
    copy->for_space = self->for_space;
    Py_XINCREF((PyObject *)self->block);
    PyObject *interface = self->interface;
    Py_XINCREF(interface);
    if (array_store(copy, &self->array, self->block) < 0) {
        Py_XDECREF(interface);
        Py_DECREF(copy);
        return NULL;
    }
    copy->interface = interface;
    copy->array.flags &= ~HAMR_GROWS;
    array_follow(copy, self);
    if (self->array.pointer == (uint64_t)(uintptr_t)self->scalar) {
        memcpy(copy->scalar, self->scalar, sizeof copy->scalar);
        copy->array.pointer = (uint64_t)(uintptr_t)copy->scalar;
    }
    return (PyObject *)copy;
}

PyObject *array_method_snapshot(PyObject *object, PyObject *type) {
    if (!is_array_type(type)) return NULL;
    return array_snapshot((Array *)object, (PyTypeObject *)type);
}

/* A snapshot that the Go core may be told of: its descriptor names memory that
 * this process's copy of the core knows. */
Array *array_pin(Array *self) {
    Array *copy = (Array *)array_snapshot(self, array_type);
    if (!copy || !copy->block) return copy;
    if (block_register(copy->block) < 0) {
        Py_DECREF(copy);
        return NULL;
    }
    copy->array.memory = copy->block->memory.token;
    if (stream_life_over(copy->life, copy->array.stream)) copy->array.stream = 0;
    return copy;
}

Array *array_pinned(Array *self) {
    const Block *block = self->block;
    int told = !block || (block->memory.token && block->memory.generation == core_generation &&
                          self->array.memory == block->memory.token);
    return self->fixed && !self->closed && told ? (Array *)Py_NewRef((PyObject *)self) : array_pin(self);
}

/* _keep(snapshot): its address was told, as array_interface tells it. */
PyObject *array_method_keep(PyObject *object, PyObject *snapshot) {
    if (!is_array(snapshot)) return NULL;
    if (array_keep((Array *)object, ((Array *)snapshot)->block) < 0) return NULL;
    Py_RETURN_NONE;
}

PyObject *array_method_pin(PyObject *object, PyObject *Py_UNUSED(unused)) {
    return (PyObject *)array_pin((Array *)object);
}
