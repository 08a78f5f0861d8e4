/* One element of an array, as a value: an array without dimensions in memory of its own. */
#include "array/element.h"

#include <stdlib.h>
#include <string.h>

#include "array/adopt.h"
#include "array/array.h"
#include "array/copy.h"
#include "base/python.h"
#include "core/stacks.h"
#include "memory/block.h"
#include "memory/owner.h"
#include "plain/allocators.h"
#include "plain/layout.h"
#include "plain/memory.h"

static int position(PyObject *key, int64_t count, int64_t stride, int64_t *offset) {
    if (!PyLong_CheckExact(key)) return 0;
    long long i = PyLong_AsLongLong(key);
    if (i == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    if (i < 0) i += count;
    if (i < 0 || i >= count) return 0;
    *offset += i * stride;
    return 1;
}

/* Whether the key is one int for each dimension, of a position that there is. */
static int find(const hamr_array *array, PyObject *key, int64_t *offset) {
    *offset = 0;
    if (array->ndim == 1 && !PyTuple_CheckExact(key)) return position(key, array->shape[0], array->strides[0], offset);
    if (!PyTuple_CheckExact(key) || PyTuple_Size(key) != array->ndim) return 0;
    for (int i = 0; i < array->ndim; i++)
        if (!position(PyTuple_GetItem(key, i), array->shape[i], array->strides[i], offset)) return 0;
    return 1;
}

/* Single elements would take a descriptor each of shared memory, and a granule each of memory that
 * grows where it is. */
static int32_t allocator_for(int32_t allocator) {
    if (allocator == HAMR_ALLOCATOR_CUDA_VMM) return HAMR_ALLOCATOR_CUDA;
    const AllocatorFacts *facts = allocator_facts(allocator);
    return facts && facts->exportable ? HAMR_ALLOCATOR_MALLOC : allocator;
}

/* Who watches memory is told of it by the core. */
static int host_has_it(const Array *self) {
    const Block *block = self->block;
    return block && self->array.flags & HAMR_HOST_REACHABLE && !is_of_device(self->array.allocator) &&
        !block_foreign_work(block) &&
           !marks_at(block->memory.marks) && !__atomic_load_n(&stacks_wanted, __ATOMIC_RELAXED);
}

static PyObject *from_host(PyTypeObject *type, const hamr_array *element) {
    size_t size = (size_t)element_facts(element->element)->size;
    void *memory = malloc(size);
    Owner *owner = memory ? owner_of_memory(memory, free) : NULL;
    if (!owner) {
        free(memory);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    memcpy(memory, (const void *)(uintptr_t)element->pointer, size);
    Draft draft;
    draft.array = *element;
    draft.array.allocator = allocator_for(element->allocator);
    draft.array.base = draft.array.pointer = (uint64_t)(uintptr_t)memory;
    draft.array.size = size;
    draft.array.marks = 0;
    return draft_finish(type, &draft, owner);
}

static PyObject *by_core(PyTypeObject *type, Array *source, const hamr_array *element) {
    Block *block = (Block *)Py_XNewRef((PyObject *)source->block);
    Array *one = array_make(array_type, element, block, source);
    if (!one) return NULL;
    one->fixed = 1;
    Array *made = array_copy(type, one, allocator_for(element->allocator), element->device, element->element);
    Py_DECREF((PyObject *)one);
    return (PyObject *)made;
}

/* element(type, array, key) */
static PyObject *element(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    if (n != 3) return PyErr_Format(PyExc_TypeError, "element takes 3 arguments, got %zd", n);
    if (!is_array_type(arguments[0]) || !is_array(arguments[1])) return NULL;
    PyTypeObject *type = (PyTypeObject *)arguments[0];
    Array *source = (Array *)arguments[1];
    OPEN(source);
    int64_t offset;
    if (!find(&source->array, arguments[2], &offset)) Py_RETURN_NONE;
    hamr_array one = source->array;
    one.ndim = 0;
    one.memory = 0;
    one.pointer += (uint64_t)offset;
    one.capacity = 1;
    one.flags &= ~(uint32_t)HAMR_GROWS;
    PyObject *made = host_has_it(source) ? from_host(type, &one) : by_core(type, source, &one);
    if (made) {
        ((Array *)made)->array.flags |= HAMR_READ_ONLY;
        ((Array *)made)->own_copy = 1;
    }
    return made;
}

PyMethodDef array_element_functions[] = {
    {"element", FAST(element), METH_FASTCALL,
     "element(type, array, key): the element at a key of one int for each dimension, as an array without dimensions "
     "that nobody writes to; None for any other key."},
    {NULL, NULL, 0, NULL},
};
