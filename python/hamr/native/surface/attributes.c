/* What an array says of itself. */
#include "surface/attributes.h"

#include <stddef.h>
#include <string.h>

#include "array/array.h"
#include "array/turn.h"
#include "base/python.h"
#include "memory/block.h"
#include "plain/layout.h"
#include "plain/memory.h"
#include "protocols/buffer_slot.h"
#include "protocols/cuda_interface.h"

static PyObject *get_shape(PyObject *self, void *Py_UNUSED(closure)) {
    OPEN(self);
    return array_dimensions(((Array *)self)->array.shape, ((Array *)self)->array.ndim);
}

static PyObject *get_strides(PyObject *self, void *Py_UNUSED(closure)) {
    OPEN(self);
    return array_dimensions(((Array *)self)->array.strides, ((Array *)self)->array.ndim);
}

static PyObject *get_typestr(PyObject *self, void *Py_UNUSED(closure)) {
    OPEN(self);
    const ElementFacts *facts = element_facts(((Array *)self)->array.element);
    return PyUnicode_FromString(facts ? facts->typestr : "");
}

static PyObject *get_itemsize(PyObject *self, void *Py_UNUSED(closure)) {
    OPEN(self);
    return PyLong_FromLongLong(element_size(((Array *)self)->array.element));
}

static PyObject *get_count(PyObject *self, void *Py_UNUSED(closure)) {
    OPEN(self);
    return PyLong_FromLongLong(array_count(&((Array *)self)->array));
}

static PyObject *get_nbytes(PyObject *self, void *Py_UNUSED(closure)) {
    OPEN(self);
    const hamr_array *array = &((Array *)self)->array;
    return PyLong_FromLongLong(array_count(array) * element_size(array->element));
}

static PyObject *get_pointer(PyObject *self, void *Py_UNUSED(closure)) {
    OPEN(self);
    if (((Array *)self)->block) memory_tell_address(&((Array *)self)->block->memory);
    return PyLong_FromUnsignedLongLong(((Array *)self)->array.pointer);
}

static PyObject *get_flag(PyObject *self, void *closure) {
    OPEN(self);
    return PyBool_FromLong((((Array *)self)->array.flags & (uint32_t)(uintptr_t)closure) != 0);
}

static PyObject *get_reach(PyObject *self, void *Py_UNUSED(closure)) {
    OPEN(self);
    return PyLong_FromUnsignedLong(((Array *)self)->array.flags / HAMR_HOST_REACHABLE);
}

static PyObject *get_contiguous(PyObject *self, void *closure) {
    OPEN(self);
    return PyBool_FromLong(array_contiguous(&((Array *)self)->array, closure != NULL));
}

static PyObject *get_address(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong((uint64_t)(uintptr_t)&((Array *)self)->array);
}

static PyObject *get_char(PyObject *self, void *closure) {
    OPEN(self);
    return PyBool_FromLong(((const char *)self)[(size_t)closure]);
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(((Array *)self)->closed);
}

static PyObject *get_int32(PyObject *self, void *closure) {
    OPEN(self);
    int32_t value;
    memcpy(&value, (char *)&((Array *)self)->array + (size_t)closure, sizeof value);
    return PyLong_FromLong(value);
}

static PyObject *get_int64(PyObject *self, void *closure) {
    OPEN(self);
    uint64_t value;
    memcpy(&value, (char *)&((Array *)self)->array + (size_t)closure, sizeof value);
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *get_order(PyObject *self, void *Py_UNUSED(closure)) {
    PyObject *order = ((Array *)self)->order;
    return Py_NewRef(order ? order : Py_None);
}

/* The object that keeps foreign memory alive; None for all other memory. */
static PyObject *get_owner(PyObject *self, void *Py_UNUSED(closure)) {
    OPEN(self);
    const Block *block = ((Array *)self)->block;
    PyObject *object = block && block->owner ? block->owner->object : NULL;
    return Py_NewRef(object ? object : Py_None);
}

static PyObject *get_changing(PyObject *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(turn_is_taken(((Array *)self)->turn));
}

#define FIELD(name) ((void *)offsetof(hamr_array, name))
/* _place is the address, for who only asks about it: nobody uses the memory by that. */
#define FLAG(bit) ((void *)(uintptr_t)(bit))

PyGetSetDef array_attributes[] = {
    {"shape", get_shape, NULL, "elements along each dimension", NULL},
    {"strides", get_strides, NULL, "bytes from one element to the next along each dimension", NULL},
    {"typestr", get_typestr, NULL, "the element type as in __array_interface__", NULL},
    {"itemsize", get_itemsize, NULL, "bytes in an element", NULL},
    {"nbytes", get_nbytes, NULL, "bytes in all elements", NULL},
    {"ndim", get_int32, NULL, "the number of dimensions", FIELD(ndim)},
    {"ptr", get_pointer, NULL, "the address of element zero, in the owner's address space; 0 without memory", NULL},
    {"readonly", get_flag, NULL, "whether the contents must not be written", FLAG(HAMR_READ_ONLY)},
    {"is_contiguous", get_contiguous, NULL, "whether the elements lie in C order without gaps", NULL},
    {"is_fortran_contiguous", get_contiguous, NULL, "whether the elements lie in Fortran order without gaps", FLAG(1)},
    {"device", get_int32, NULL, "the device that owns the memory; -1 is the host", FIELD(device)},
    {"__array_interface__", array_interface, NULL,
     "NumPy's array interface, version 3, where the host reaches the memory", NULL},
    {"__cuda_array_interface__", cuda_array_interface, NULL,
     "the CUDA array interface, version 3, where CUDA reaches the memory", NULL},
    {"_place", get_int64, NULL, NULL, FIELD(pointer)},
    {"_reach", get_reach, NULL, NULL, NULL},
    {"_count", get_count, NULL, NULL, NULL},
    {"_address", get_address, NULL, NULL, NULL},
    {"_closed", get_closed, NULL, NULL, NULL},
    {"_cached", get_char, NULL, NULL, (void *)offsetof(Array, cached)},
    {"_temporary", get_char, NULL, NULL, (void *)offsetof(Array, temporary)},
    {"_own_copy", get_char, NULL, NULL, (void *)offsetof(Array, own_copy)},
    {"_host", get_flag, NULL, NULL, FLAG(HAMR_HOST_REACHABLE)},
    {"_allocator", get_int32, NULL, NULL, FIELD(allocator)},
    {"_element", get_int32, NULL, NULL, FIELD(element)},
    {"_transfer", get_int32, NULL, NULL, FIELD(transfer)},
    {"_stream", get_int64, NULL, NULL, FIELD(stream)},
    {"_order", get_order, NULL, NULL, NULL},
    {"_owner", get_owner, NULL, NULL, NULL},
    {"_changing", get_changing, NULL, NULL, NULL},
    {"_capacity", get_int64, NULL, NULL, FIELD(capacity)},
    {NULL, NULL, NULL, NULL, NULL},
};

/* What Python's slots are, so that it is as quick. */
PyMemberDef array_members[] = {
    {"_source", T_OBJECT_EX, offsetof(Array, source), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
