/* Where code in a space can touch an array: in place without asking Go, where C
 * can tell that it may be so, else through the core. */
#include "array/access.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "array/adopt.h"
#include "array/array.h"
#include "array/default_stream.h"
#include "array/description.h"
#include "array/result.h"
#include "array/snapshot.h"
#include "base/elements.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/patience.h"
#include "core/relief.h"
#include "memory/block.h"
#include "memory/owner.h"
#include "plain/allocators.h"
#include "plain/layout.h"
#include "plain/memory.h"

static PyTypeObject *handle_type;

int is_handle(const Array *self) { return handle_type && PyObject_TypeCheck((PyObject *)(uintptr_t)self, handle_type); }

int array_usable(const Array *self) {
    const Block *block = self->block;
    return block && block->memory.generation != core_generation ? block_survives(block) : 0;
}

static int in_place_for_host(const Array *self) {
    return host_in_place(&self->array, self->block ? self->block->memory.marks : 0);
}

static int cuda_in_place(const Array *self, int32_t device) {
    const hamr_array *array = &self->array;
    if (!(array->flags & HAMR_REACHABLE(HAMR_CUDA)) || !core_functions() || array_may_be_paused(self)) return 0;
    const hamr_devices *devices = core_functions()->devices;
    if (devices->cuda_count < 1 || device >= devices->cuda_count) return 0;
    if (device < 0) {
        int current = 0;
        if (devices->cuda_count > 1 && (!devices->cuda_current || devices->cuda_current(&current) != 0)) current = 0;
        device = current;
    }
    return device == array->device;
}

/* Copies a device's elements, which lie in C order, to the host: 0, and nothing has happened, if the
 * core has to do it in the general way. */
static int32_t read_bytes(Array *source, void *target, int64_t size, hamr_error **error) {
    int32_t done = default_stream_download(source, target, size, error);
    if (done) return done;
    const hamr_functions *functions = core_functions(); /* none in a child that was forked meanwhile */
    if (!functions) return 0;
    PATIENT_CALL(*error, &source->array, functions->read(&source->array, target, size, &done));
    return done;
}

#define SMALL (256 << 10) /* bytes of a temporary that C takes the memory for itself */
#define ALIGNMENT 64     /* as the core's own memory */

/* How many bytes a few elements have that lie in C order; else 0. Who pins an array asks again: making
 * the snapshot may run finalisers, which may have changed it. */
static int64_t small_bytes(const Array *self) {
    const hamr_array *array = &self->array;
    int64_t count = array_count(array), size = element_facts(array->element)->size;
    return self->block && count > 0 && count <= SMALL / size && array_contiguous(array, 0) ? count * size : 0;
}

static int64_t bytes_to_read(const Array *self) {
    return self->array.flags & HAMR_HOST_REACHABLE || is_mapped(self->array.allocator) ? 0 : small_bytes(self);
}

/* A handle on a copy in host memory, for a few elements that lie in C order on a device: the core copies, and need not
 * know of the copy. NULL without an exception if it is not as simple as that. */
static PyObject *small_temporary(Array *self) {
    if (self->cached || !bytes_to_read(self)) return NULL;
    Array *source = array_pin(self);
    int64_t size = source ? bytes_to_read(source) : 0;
    /* A finaliser may have forked: the child has no core yet. */
    char *memory = size && core_functions() ? malloc((size_t)size + ALIGNMENT) : NULL;
    if (!memory) {
        Py_XDECREF((PyObject *)source);
        return NULL;
    }
    char *aligned = memory + ALIGNMENT - ((uintptr_t)memory & (ALIGNMENT - 1));
    hamr_error *error = NULL;
    int32_t done = read_bytes(source, aligned, size, &error);
    Owner *owner = error || !done ? NULL : owner_of_memory(memory, free);
    if (!owner) {
        free(memory);
        Py_DECREF(source);
        return core_failed(error);
    }
    hamr_array temporary = source->array;
    temporary.memory = temporary.marks = 0;
    temporary.base = temporary.pointer = (uint64_t)(uintptr_t)aligned;
    temporary.size = (uint64_t)size;
    temporary.capacity = array_count(&temporary);
    temporary.allocator = HAMR_ALLOCATOR_MALLOC;
    temporary.device = HAMR_HOST_DEVICE;
    temporary.flags = HAMR_HOST_REACHABLE | HAMR_READ_ONLY;
    Block *block = block_new(&temporary, owner);
    Array *handle = block ? array_make(handle_type, &temporary, block, source) : NULL;
    if (handle) {
        handle->fixed = handle->temporary = handle->own_copy = 1;
        handle->for_space = FOR_SPACE(HAMR_HOST);
    }
    Py_DECREF(source);
    return (PyObject *)handle;
}

static int64_t bytes_to_bring(const Array *self) {
    const Block *block = self->block;
    if (is_of_device(self->array.allocator) || self->array.stream || !block || block_foreign_work(block) ||
        marks_at(block->memory.marks))
        return 0;
    return small_bytes(self);
}

/* A handle on memory that is to have a pinned array's elements, where there is some to be had at once. */
static Array *room_for(const Array *source, int32_t device) {
    const hamr_functions *functions = core_functions();
    Draft draft;
    draft_start(&draft);
    draft.array.element = source->array.element;
    draft.array.allocator = HAMR_ALLOCATOR_CUDA;
    draft.array.device = device;
    draft.array.transfer = source->array.transfer;
    draft.array.ndim = source->array.ndim;
    memcpy(draft.dimensions, source->array.shape, (size_t)draft.array.ndim * sizeof *draft.dimensions);
    place_array(&draft.array, functions->devices);
    Array *handle = functions->create_at_once(&draft.array) ? (Array *)draft_finish(handle_type, &draft, NULL) : NULL;
    if (!handle) return NULL;
    handle->fixed = handle->temporary = 1;
    handle->for_space = FOR_SPACE(HAMR_CUDA);
    array_follow(handle, source);
    return handle;
}

/* A handle on a copy in memory of a device, for a few elements in C order of ordinary host memory,
 * where there is memory to be had at once. NULL as above. */
static PyObject *small_upload(Array *self, int32_t device) {
    const hamr_functions *functions = core_functions();
    /* To start the runtime takes long, and other threads may run meanwhile: through_core lets them. */
    if (!functions || functions->devices->cuda_count < 1 || self->cached || !bytes_to_bring(self)) return NULL;
    Array *source = array_pin(self);
    int64_t size = source && core_functions() ? bytes_to_bring(source) : 0;
    Array *handle = size ? room_for(source, device) : NULL;
    int32_t done = 0;
    hamr_error *error = NULL;
    functions = core_functions(); /* another one, or none, if a finaliser has forked meanwhile */
    if (handle && functions && handle->block->memory.generation == core_generation) {
        const void *elements = (const void *)(uintptr_t)source->array.pointer;
        hamr_array target = handle->array;
        target.memory = handle->block->memory.token;
        Py_BEGIN_ALLOW_THREADS
        error = functions->write_bytes(&target, elements, size, &done);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF((PyObject *)source);
    if (done && !error) return (PyObject *)handle;
    if (error) core_raise(error);
    Py_XDECREF((PyObject *)handle);
    return NULL;
}

PyObject *access_handle(Result *result, Array *source, int32_t space) {
    Block *block;
    int kept = (result->draft.array.flags & HAMR_KEPT) != 0;
    result->draft.array.flags &= ~HAMR_KEPT;
    if (result_block(result, source, NULL, &block) < 0) return NULL;
    if (kept && block) block_keep(block);
    Array *handle = array_make(handle_type, &result->draft.array, block, source);
    if (!handle) return NULL;
    handle->fixed = 1;
    handle->for_space = FOR_SPACE(space);
    int copied = block != source->block && !(result->draft.array.flags & HAMR_MAPPED);
    handle->temporary = copied || source->temporary;
    handle->own_copy = !copied && source->own_copy;
    if (!handle->interface && block == source->block && handle->array.flags == source->array.flags) {
        handle->interface = source->interface;
        Py_XINCREF(handle->interface);
    }
    return (PyObject *)handle;
}

/* What the core makes of the array for code in a space. */
static PyObject *through_core(Array *self, int32_t space, int32_t device) {
    Array *source = array_pin(self);
    if (!source) return NULL;
    Result result;
    hamr_error *error;
    const hamr_functions *functions = core_load() < 0 ? NULL : core_functions();
    if (!functions) {
        Py_DECREF(source);
        return NULL;
    }
    int cached = self->cached;
    Relief relief = relief_begin();
    do {
        functions = core_functions();
        result_start(&result, source);
        if (cached) source->array.flags |= HAMR_KEPT;
        PATIENT_CALL(error, &source->array, functions->access(&source->array, space, device, &result.draft.array));
        source->array.flags &= ~HAMR_KEPT;
    } while (error && core_relieves(&relief, &error, NULL));
    relief_end(&relief);
    if (cached && (self->closed || !self->cached)) free(array_changed(source)); /* by another thread meanwhile */
    if (error) {
        result_end(&result);
        Py_DECREF(source);
        return core_failed(error);
    }
    Array *handle = (Array *)access_handle(&result, source, space);
    /* What the host would write to a copy would be lost. Most libraries for devices refuse read-only arrays. */
    if (handle && space == HAMR_HOST && handle->temporary && handle->block && handle->block != source->block &&
        array_count(&handle->array) && !(handle->array.flags & (HAMR_READ_ONLY | HAMR_MAPPED))) {
        handle->array.flags |= HAMR_READ_ONLY;
        handle->own_copy = 1;
    }
    Py_DECREF(source);
    return (PyObject *)handle;
}

static PyObject *in_place(Array *self, int32_t space) {
    Array *handle = (Array *)array_snapshot(self, handle_type);
    if (handle) handle->for_space = FOR_SPACE(space);
    return (PyObject *)handle;
}

PyObject *array_access(Array *self, int32_t space, int32_t device) {
    if (self->closed) return array_freed(self);
    if (array_usable(self) < 0) return NULL;
    if (!handle_type) return PyErr_Format(PyExc_RuntimeError, "hamr is not initialised");
    if (space == HAMR_HOST && in_place_for_host(self)) return in_place(self, space);
    if (space == HAMR_CUDA && cuda_in_place(self, device)) {
        if (!self->interface && description_prepare(self) < 0) return NULL;
        return in_place(self, space);
    }
    if (space == HAMR_HOST) {
        PyObject *handle = small_temporary(self);
        if (handle || PyErr_Occurred()) return handle;
    }
    if (space == HAMR_CUDA) {
        PyObject *handle = small_upload(self, device);
        if (handle || PyErr_Occurred()) return handle;
    }
    return through_core(self, space, device);
}

/* Ordinary host memory may be such as somebody has page-locked, which devices write to later. */
int array_may_be_pending(const Array *self) {
    return is_of_device(self->array.allocator) || (self->block && marks_at(self->block->memory.marks));
}

/* A handle on the host is its own; not to users, who close what they are given. */
Array *array_settled(Array *self) {
    if (self->fixed && !self->closed && self->for_space == FOR_SPACE(HAMR_HOST) && array_usable(self) == 0 &&
        in_place_for_host(self))
        return (Array *)Py_NewRef((PyObject *)self);
    return PyErr_Occurred() ? NULL : (Array *)array_access(self, HAMR_HOST, -1);
}

static PyObject *device_reader; /* what makes a number of any spelling of a device, or says what is wrong */

static int read_device(PyObject *value, int32_t *device) {
    if (value == Py_None) return 0;
    if (PyLong_CheckExact(value)) {
        long wide = PyLong_AsLong(value);
        if (wide == -1 && PyErr_Occurred()) PyErr_Clear();
        else if (wide >= -1 && wide <= INT32_MAX) {
            *device = (int32_t)wide;
            return 0;
        }
    }
    if (!device_reader) return RAISE(PyExc_RuntimeError, "hamr is not initialised");
    PyObject *number = PyObject_CallFunctionObjArgs(device_reader, value, NULL);
    int read = number ? read_int32(number, "device", device) : -1;
    Py_XDECREF(number);
    return read;
}

static PyObject *accessible(PyObject *self, int32_t space, const char *name, PyObject *const *arguments, Py_ssize_t n,
                            PyObject *names) {
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    int32_t device = -1;
    if (n + named > (space != HAMR_HOST))
        return PyErr_Format(PyExc_TypeError, "%s takes %s, got %zd", name, space == HAMR_HOST ? "no argument"
                            : "at most one argument, device", n + named);
    if (named && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "device") != 0)
        return PyErr_Format(PyExc_TypeError, "%s got an unexpected keyword argument %R: accepted is device", name,
                            PyTuple_GetItem(names, 0));
    if (n + named && read_device(arguments[0], &device) < 0) return NULL;
    return array_access((Array *)self, space, device);
}

#define ACCESSOR(space, number, name, code)                                                                        \
    PyObject *get_##name##_accessible(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names) { \
        return accessible(self, space, "get_" #name "_accessible()", arguments, n, names);                         \
    }

ACCESSOR(HAMR_HOST, 0, host, "")
HAMR_DEVICE_SPACES(ACCESSOR)

/* read_into(array, out) -> bool: copy a device's elements into an exporter of the buffer protocol, if it has the same
 * shape and type, both lie in C order, and no other way is called for. */
static PyObject *read_into(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    if (n != 2 || !PyObject_TypeCheck(arguments[0], array_type))
        return PyErr_Format(PyExc_TypeError, "read_into takes an array and a buffer");
    Array *self = (Array *)arguments[0];
    if (self->closed) return array_freed(self);
    if ((self->array.flags & HAMR_HOST_REACHABLE) || PyObject_TypeCheck(arguments[1], array_type) ||
        !PyObject_CheckBuffer(arguments[1]))
        Py_RETURN_FALSE;
    Array *source = array_pin(self);
    if (!source) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(arguments[1], &view, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0) {
        Py_DECREF(source);
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear(); /* the general way says what is wrong */
        Py_RETURN_FALSE;
    }
    const hamr_array *array = &source->array;
    int same = view.ndim == array->ndim && element_from_format(view.format, view.itemsize) == array->element;
    for (int i = 0; same && i < view.ndim; i++) same = view.shape[i] == array->shape[i];
    int32_t done = 0;
    hamr_error *error = NULL;
    if (same && source->block) done = read_bytes(source, view.buf, view.len, &error);
    PyBuffer_Release(&view);
    Py_DECREF(source);
    if (error) return core_failed(error);
    return PyBool_FromLong(done);
}

static PyObject *set_handle_type(PyObject *Py_UNUSED(module), PyObject *type) {
    if (!is_array_type(type)) return NULL;
    replace_reference((PyObject **)&handle_type, Py_NewRef(type));
    Py_RETURN_NONE;
}

static PyObject *set_device_reader(PyObject *Py_UNUSED(module), PyObject *reader) {
    replace_reference(&device_reader, Py_NewRef(reader));
    Py_RETURN_NONE;
}

PyMethodDef access_functions[] = {
    {"set_device_reader", set_device_reader, METH_O,
     "set_device_reader(reader): what makes a number of a device that is no plain int."},
    {"read_into", FAST(read_into), METH_FASTCALL,
     "read_into(array, out) -> bool: copy a device's elements into a plain array of the same kind, if out is one."},
    {"set_handle_type", set_handle_type, METH_O, "set_handle_type(type): what the accessors of an array return."},
    {NULL, NULL, 0, NULL},
};
