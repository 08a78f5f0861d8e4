#include "array/create.h"

#include "array/access.h"
#include "array/adopt.h"
#include "array/array.h"
#include "array/snapshot.h"
#include "base/dimensions.h"
#include "base/elements.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/relief.h"
#include "memory/block.h"
#include "memory/owner.h"
#include "plain/allocators.h"
#include "plain/layout.h"

#define LONG_FILL (256u << 10) /* bytes whose filling is worth letting other threads run */

static int read_shape(PyObject *shape, hamr_array *array) {
    if (PyTuple_Check(shape)) {
        array->ndim = read_dimensions(shape, "shape", array->shape);
        return array->ndim;
    }
    array->shape[0] = PyLong_AsLongLong(shape);
    array->ndim = 1;
    if (array->shape[0] != -1 || !PyErr_Occurred()) return 1;
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Format(PyExc_ValueError, "shape is %R: it does not fit in 64 bits", shape);
    else PyErr_Format(PyExc_TypeError, "shape is %R: accepted is an int or a tuple of int", shape);
    return -1;
}

static int read_place(PyObject *const *arguments, hamr_array *array) {
    if (read_int32(arguments[0], "element", &array->element) < 0 ||
        read_int32(arguments[1], "allocator", &array->allocator) < 0 ||
        read_int32(arguments[2], "device", &array->device) < 0 ||
        read_int32(arguments[4], "transfer", &array->transfer) < 0)
        return -1;
    array->stream = PyLong_AsUnsignedLongLong(arguments[3]);
    return array->stream == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

/* Whether taking memory may wait for a device, or for its runtime to start. */
static int creation_is_long(const hamr_array *array, const hamr_functions *functions) {
    return is_of_device(array->allocator) && (!is_ordered(array->allocator) || !functions->devices->cuda_count);
}

/* Whether the core may have memory that was given back, for which nobody is waited. */
static int may_be_there(const hamr_array *array) {
    return memory_kind(array->allocator) == HAMR_DEVICE_ONLY && !array->stream;
}

int create_draft(Draft *draft, void *value, int32_t value_element) {
    hamr_array *array = &draft->array;
    const hamr_functions *functions = core_functions();
    hamr_error *error;
    int64_t total = 1;
    if (!value && may_be_there(array)) {
        place_array(array, functions->devices);
        if (functions->create_at_once(array)) return 0;
    }
    for (int i = 0; i < array->ndim && total < LONG_FILL; i++)
        total *= array->shape[i] > LONG_FILL ? LONG_FILL : array->shape[i] < 0 ? 0 : array->shape[i];
    Relief relief = relief_begin();
    do {
        functions = core_functions();
        if (total >= LONG_FILL / 16 || creation_is_long(array, functions)) {
            Py_BEGIN_ALLOW_THREADS
            error = functions->create(array, value, value_element);
            Py_END_ALLOW_THREADS
        } else {
            error = functions->create(array, value, value_element);
        }
    } while (error && core_relieves(&relief, &error, &array->flags));
    relief_end(&relief);
    return error ? core_raise(error) : 0;
}

/* create(type, element, allocator, device, stream, transfer, shape, value) */
static PyObject *create(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Draft draft;
    unsigned char bytes[16];
    int32_t value_element = 0;
    int filled = 0;
    if (arity(n, 8, "create") < 0 || !is_array_type(arguments[0])) return NULL;
    draft_start(&draft);
    if (read_place(arguments + 1, &draft.array) < 0 || read_shape(arguments[6], &draft.array) < 0) return NULL;
    if (arguments[7] != Py_None) {
        filled = element_from_scalar(arguments[7], bytes, &value_element);
        if (filled == 0) PyErr_Format(PyExc_TypeError, "value is %R: accepted is a number", arguments[7]);
        if (filled <= 0) return NULL;
    }
    if (core_load() < 0) return NULL; /* only now: an argument's __index__ may fork */
    if (create_draft(&draft, filled ? bytes : NULL, value_element) < 0) return NULL;
    return draft_finish((PyTypeObject *)arguments[0], &draft, NULL);
}

/* create_cached(type, element, allocator, device, stream, transfer, shape, number, generation): memory of
 * a caching allocator of that generation of the core, which has the number there. */
static PyObject *create_cached(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Draft draft;
    if (arity(n, 9, "create_cached") < 0 || !is_array_type(arguments[0])) return NULL;
    draft_start(&draft);
    if (read_place(arguments + 1, &draft.array) < 0 || read_shape(arguments[6], &draft.array) < 0) return NULL;
    uint64_t number = PyLong_AsUnsignedLongLong(arguments[7]), generation = PyLong_AsUnsignedLongLong(arguments[8]);
    if (PyErr_Occurred() || core_load() < 0) return NULL;
    hamr_error *error;
    Relief relief = relief_begin();
    do {
        if (generation != core_generation) {
            relief_end(&relief);
            core_forked();
            return NULL;
        }
        const hamr_functions *functions = core_functions();
        Py_BEGIN_ALLOW_THREADS
        error = functions->create_cached(number, &draft.array);
        Py_END_ALLOW_THREADS
    } while (error && core_relieves(&relief, &error, NULL));
    relief_end(&relief);
    if (error) return core_failed(error);
    PyObject *made = draft_finish((PyTypeObject *)arguments[0], &draft, NULL);
    if (made) ((Array *)made)->block->reused_in_order = 1;
    return made;
}

/* The arguments that adopt_pointer and adopt_device share: element, allocator,
 * device, stream, transfer, pointer, shape, strides, readonly. */
static int read_pointer(PyObject *const *arguments, Draft *draft) {
    draft_start(draft);
    hamr_array *array = &draft->array;
    if (read_place(arguments, array) < 0 || read_shape(arguments[6], array) < 0) return -1;
    array->pointer = PyLong_AsUnsignedLongLong(arguments[5]);
    if (array->pointer == (uint64_t)-1 && PyErr_Occurred()) return -1;
    if (!element_facts(array->element))
        return RAISE(PyExc_TypeError, "element is %R: accepted is an element type's number", arguments[0]);
    if (arguments[7] == Py_None) {
        array_c_strides(array);
    } else {
        int dimensions = read_dimensions(arguments[7], "strides", array->strides);
        if (dimensions < 0) return -1;
        if (dimensions != array->ndim)
            return RAISE(PyExc_ValueError, "strides is %R: accepted are %d entries, one for each dimension",
                         arguments[7], array->ndim);
    }
    int readonly = PyObject_IsTrue(arguments[8]);
    if (readonly > 0) array->flags |= HAMR_READ_ONLY;
    return readonly < 0 ? -1 : 0;
}

/* Keeps an object alive, and the memory that one of hamr's has now: it may take other
 * memory, or be closed, at any time. */
static Owner *owner_of_pointer(PyObject *object) {
    if (!PyObject_TypeCheck(object, array_type) || ((Array *)object)->closed) return owner_new(object, NULL);
    PyObject *memory = array_snapshot((Array *)object, array_type);
    PyObject *both = memory ? PyTuple_Pack(2, object, memory) : NULL;
    Owner *owner = both ? owner_new(both, NULL) : NULL;
    Py_XDECREF(memory);
    Py_XDECREF(both);
    return owner;
}

/* adopt_pointer(type, element, allocator, device, stream, transfer, pointer,
 *               shape, strides, readonly, owner, take)
 * owner is kept alive as long as the memory is used; with take, the memory is
 * freed by its allocator instead. */
static PyObject *adopt_pointer(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Draft draft;
    if (arity(n, 12, "adopt_pointer") < 0 || !is_array_type(arguments[0]) || read_pointer(arguments + 1, &draft) < 0)
        return NULL;
    int take = PyObject_IsTrue(arguments[11]);
    if (take < 0) return NULL;
    Owner *owner = take ? NULL : owner_of_pointer(arguments[10]);
    if (!take && !owner) return NULL;
    if (is_of_device(draft.array.allocator)) return draft_adopt_device((PyTypeObject *)arguments[0], &draft, owner, 0);
    return draft_adopt_host((PyTypeObject *)arguments[0], &draft, owner);
}

/* adopt_device(type, element, allocator, device, stream, transfer, pointer,
 *              shape, strides, readonly, owner, producer) */
static PyObject *adopt_device_pointer(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Draft draft;
    if (arity(n, 12, "adopt_device") < 0 || !is_array_type(arguments[0]) || read_pointer(arguments + 1, &draft) < 0)
        return NULL;
    uint64_t producer = PyLong_AsUnsignedLongLong(arguments[11]);
    if (producer == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    Owner *owner = owner_new(arguments[10], NULL);
    return owner ? draft_adopt_device((PyTypeObject *)arguments[0], &draft, owner, producer) : NULL;
}

/* A draft of what lies in source's memory. */
static void part_start(Draft *draft, const Array *source) {
    draft_start(draft);
    draft->array = source->array;
    draft->array.shape = draft->dimensions;
    draft->array.strides = draft->dimensions + HAMR_MAX_DIMENSIONS;
}

static PyObject *part_made(PyTypeObject *type, Array *source, Draft *draft) {
    draft->array.capacity = array_count(&draft->array);
    draft->array.flags &= ~HAMR_GROWS;
    /* Held first: making an object may run finalisers, which may change source. */
    Block *block = source->block;
    Py_XINCREF((PyObject *)block);
    Array *self = array_make(type, &draft->array, block, source);
    if (self && is_handle(self)) {
        self->fixed = 1;
        self->temporary = source->temporary;
        self->for_space = source->for_space;
    }
    if (self) self->own_copy = source->own_copy;
    return (PyObject *)self;
}

/* view(type, source, offset, shape, strides, element): some of source's elements, in place, or its bytes as others of
 * another type. The caller has checked that they are source's. */
static PyObject *view(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Draft draft;
    if (n != 5 && arity(n, 6, "view") < 0) return NULL;
    if (!is_array_type(arguments[0])) return NULL;
    if (!is_array(arguments[1])) return NULL;
    Array *source = (Array *)arguments[1];
    if (source->closed) return array_freed(source);
    part_start(&draft, source);
    long long offset = PyLong_AsLongLong(arguments[2]);
    if (offset == -1 && PyErr_Occurred()) return NULL;
    if ((draft.array.ndim = read_dimensions(arguments[3], "shape", draft.array.shape)) < 0) return NULL;
    if (read_dimensions(arguments[4], "strides", draft.array.strides) != draft.array.ndim) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "strides and shape differ in length");
        return NULL;
    }
    int32_t element = 0; /* none: that of source */
    if (n == 6 && read_int32(arguments[5], "element", &element) < 0) return NULL;
    if (element_facts(element)) draft.array.element = element;
    if (draft.array.pointer) draft.array.pointer += (uint64_t)offset;
    return part_made((PyTypeObject *)arguments[0], source, &draft);
}

/* Makes row's draft, of a list [offset, element's place in elements, sizes ...], whose elements lie in C order. */
static int read_row(PyObject *row, PyObject *elements, uint64_t nbytes, Draft *draft) {
    int64_t values[2 + HAMR_MAX_DIMENSIONS];
    if (!PyList_Check(row)) return RAISE(PyExc_TypeError, "%R is no list", row);
    Py_ssize_t n = PyList_Size(row);
    if (n < 2 || n > 2 + HAMR_MAX_DIMENSIONS) return RAISE(PyExc_ValueError, "it has %zd numbers", n);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *number = PyList_GetItem(row, i);
        if (!number || !PyLong_CheckExact(number)) return RAISE(PyExc_TypeError, "%R is no integer", number);
        values[i] = PyLong_AsLongLong(number);
        if (values[i] == -1 && PyErr_Occurred()) return -1;
        if (values[i] < 0) return RAISE(PyExc_ValueError, "it has the number %lld", (long long)values[i]);
    }
    PyObject *element = PyTuple_GetItem(elements, (Py_ssize_t)values[1]);
    if (!element || read_int32(element, "element", &draft->array.element) < 0) return -1;
    draft->array.ndim = (int32_t)(n - 2);
    for (Py_ssize_t i = 2; i < n; i++) draft->array.shape[i - 2] = values[i];
    int64_t least = array_c_strides(&draft->array); /* each size of 0 counted as 1 */
    int64_t count = least < 0 ? -1 : array_count(&draft->array);
    if (least > 0 && values[0] % element_size(draft->array.element))
        return RAISE(PyExc_ValueError, "its elements lie at byte %lld", (long long)values[0]);
    if (least < 0 || (uint64_t)values[0] > nbytes || (count && (uint64_t)least > nbytes - (uint64_t)values[0]))
        return RAISE(PyExc_ValueError, "its elements are not within the %llu bytes", (unsigned long long)nbytes);
    if (draft->array.pointer) draft->array.pointer += (uint64_t)values[0];
    return 0;
}

/* views(type, source, rows, elements): a view for each of a list's rows of what lies in source's bytes, as read_row has
 * it. ValueError with the row's number where one is not within them. */
static PyObject *views(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    if (arity(n, 4, "views") < 0 || !is_array_type(arguments[0]) || !is_array(arguments[1])) return NULL;
    Array *source = (Array *)arguments[1];
    if (!PyList_Check(arguments[2])) return PyErr_Format(PyExc_TypeError, "%R is no list", arguments[2]);
    Py_ssize_t count = PyList_Size(arguments[2]);
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        Draft draft;
        PyObject *self = NULL, *row = PyList_GetItem(arguments[2], i);
        if (source->closed) {
            array_freed(source);
        } else if (row) {
            part_start(&draft, source);
            Py_INCREF(row);
            uint64_t nbytes = (uint64_t)array_count(&source->array) * (uint64_t)element_size(source->array.element);
            if (read_row(row, arguments[3], nbytes, &draft) == 0)
                self = part_made((PyTypeObject *)arguments[0], source, &draft);
            Py_DECREF(row);
        }
        if (!self || PyList_SetItem(made, i, self) < 0) Py_CLEAR(made);
    }
    return made;
}

PyObject *array_of_number(PyObject *value) {
    Array *self = array_new(array_type);
    if (!self) return NULL;
    int known = element_from_scalar(value, self->scalar, &self->array.element);
    if (known <= 0) {
        Py_DECREF(self);
        if (known < 0) return NULL;
        Py_RETURN_NONE;
    }
    self->fixed = 1;
    self->array.ndim = 0;
    self->array.pointer = self->array.base = (uint64_t)(uintptr_t)self->scalar;
    self->array.size = (uint64_t)element_facts(self->array.element)->size;
    self->array.capacity = 1;
    self->array.allocator = 1;
    self->array.flags = HAMR_HOST_REACHABLE | HAMR_READ_ONLY;
    return (PyObject *)self;
}

/* scalar(value): a number as an array without dimensions, or None. */
static PyObject *scalar(PyObject *Py_UNUSED(module), PyObject *value) {
    return array_of_number(value);
}

/* bytes_of(array): the bytes of elements that the host reaches, in C order. */
static PyObject *bytes_of(PyObject *Py_UNUSED(module), PyObject *object) {
    if (!is_array(object)) return NULL;
    const hamr_array *array = &((Array *)object)->array;
    const ElementFacts *facts = element_facts(array->element);
    if (((Array *)object)->closed) return array_freed((Array *)object);
    if (!facts || !(array->flags & HAMR_HOST_REACHABLE) || !array_contiguous(array, 0))
        return PyErr_Format(PyExc_ValueError, "the elements do not lie in C order in host memory");
    return PyBytes_FromStringAndSize((const char *)(uintptr_t)array->pointer,
                                     (Py_ssize_t)(array_count(array) * facts->size));
}

PyMethodDef create_functions[] = {
    {"create", FAST(create), METH_FASTCALL,
     "create(type, element, allocator, device, stream, transfer, shape, value): new memory."},
    {"create_cached", FAST(create_cached), METH_FASTCALL,
     "create_cached(type, element, allocator, device, stream, transfer, shape, number, generation): memory of a "
     "caching allocator."},
    {"adopt_pointer", FAST(adopt_pointer), METH_FASTCALL,
     "adopt_pointer(type, element, allocator, device, stream, transfer, pointer, shape, strides, readonly, owner, "
     "take): share memory at an address."},
    {"adopt_device", FAST(adopt_device_pointer), METH_FASTCALL,
     "adopt_device(type, element, allocator, device, stream, transfer, pointer, shape, strides, readonly, owner, "
     "producer): share device memory at an address."},
    {"view", FAST(view), METH_FASTCALL,
     "view(type, source, offset, shape, strides, element): some of source's elements, in place; or its bytes as "
     "elements of a type, unless that is 0."},
    {"views", FAST(views), METH_FASTCALL,
     "views(type, source, rows, elements): for each of a list's rows, [offset, element's place in the tuple elements, "
     "sizes ...], a view of what lies in source's bytes."},
    {"scalar", scalar, METH_O, "scalar(value): a number as an array without dimensions, or None."},
    {"bytes_of", bytes_of, METH_O, "bytes_of(array): the bytes of elements in host memory in C order."},
    {NULL, NULL, 0, NULL},
};
