/* __dlpack__: arrays for other libraries, as DLPack 1.3 describes them. */
#include "protocols/dlpack_export.h"

#include <stdlib.h>

#include "array/access.h"
#include "array/array.h"
#include "array/copy.h"
#include "array/default_stream.h"
#include "array/order.h"
#include "array/snapshot.h"
#include "base/python.h"
#include "base/streams.h"
#include "core/core.h"
#include "memory/block.h"
#include "memory/owner.h"
#include "memory/stream_life.h"
#include "plain/allocators.h"
#include "plain/dlpack.h"
#include "plain/layout.h"
#include "plain/memory.h"
#include "plain/tensor.h"
#include "protocols/dlpack_device.h"
#include "protocols/dlpack_request.h"

static const char versioned_name[] = "dltensor_versioned", legacy_name[] = "dltensor";

/* What a consumer holds, in one piece of memory: the end of the owner is that of it all. */
typedef struct {
    Owner owner;      /* first, since its address is what is freed */
    PyObject *memory; /* the Block, or the array that holds its element itself; may be NULL */
    PyObject *order;  /* keeps the stream alive that the memory is released on, or NULL */
    int shared;       /* the consumer uses memory of ours on its stream */
    int64_t stream;
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor legacy;
    } tensor;
    int64_t dimensions[];
} Export;

static void finish(void *memory) {
    Export *export = memory;
    if (export->shared) block_shared_with((Block *)export->memory, export->stream);
    Py_XDECREF(export->memory);
    Py_XDECREF(export->order); /* last: memory may be released in its order */
}

static void delete_versioned(DLManagedTensorVersioned *tensor) { owner_finished_soon(tensor->manager_ctx); }

static void delete_legacy(DLManagedTensor *tensor) { owner_finished_soon(tensor->manager_ctx); }

static int device_of(const Array *self, DLDevice *device) {
    const hamr_array *array = &self->array;
    device->device_type = dlpack_device_type(array, self->for_space);
    device->device_id = tensor_device(device->device_type, array->device);
    if (device->device_type) return 0;
    const AllocatorFacts *facts = allocator_facts(array->allocator);
    return RAISE(PyExc_BufferError,
                 "DLPack has no device for memory of allocator %s: get_host_accessible() brings the elements to the "
                 "host", facts ? facts->name : "none");
}

typedef struct {
    DLDevice device;
    uint64_t flags;
    int legacy;     /* for a consumer that does not know of versions */
    int shared;
    int64_t stream; /* the consumer's, or UNKNOWN_STREAM */
} Manner;

/* Makes no Python object on the way, so that nothing can change the array meanwhile. */
static Export *export_array(Array *self, const Manner *manner) {
    if (self->closed) return array_freed(self), NULL;
    const hamr_array *array = &self->array;
    const ElementFacts *facts = element_facts(array->element);
    /* Most libraries for devices have no read-only arrays, and before version 1 nobody could be told. */
    int told = !self->own_copy || (manner->device.device_type == kDLCPU && !manner->legacy);
    int readonly = (array->flags & HAMR_READ_ONLY) != 0 && told;
    if (!facts) return PyErr_Format(PyExc_BufferError, "DLPack has no type for these elements"), NULL;
    if (readonly && manner->legacy)
        return PyErr_Format(PyExc_BufferError,
                            "the buffer is read-only, which DLPack could not say before version 1: accepted are "
                            "max_version=(1, 0) or later, and copy=True"), NULL;
    Export *export = malloc(sizeof *export + 2 * (size_t)array->ndim * sizeof *export->dimensions);
    if (!export) return PyErr_NoMemory(), NULL;
    DLTensor tensor;
    int dimension = tensor_fill(&tensor, array, manner->device.device_type, export->dimensions);
    if (dimension >= 0) {
        PyErr_Format(PyExc_BufferError,
                     "strides[%d] is %lld bytes: DLPack counts strides in elements, here of %d bytes; "
                                        "copy() makes a buffer in C order",
                     dimension, (long long)array->strides[dimension], facts->size);
        free(export);
        return NULL;
    }
    int own_element = array->pointer == (uint64_t)(uintptr_t)self->scalar;
    export->owner = (Owner){.memory = export, .finish = finish};
    export->memory = own_element ? (PyObject *)self : (PyObject *)self->block;
    export->order = self->order;
    export->shared = manner->shared && self->block && !own_element;
    export->stream = manner->stream;
    /* What ends with the buffer's number of it may have ended before the consumer has. */
    if (manner->stream > PER_THREAD_STREAM && !stream_life_keeps(self->life, (uint64_t)manner->stream))
        export->stream = UNKNOWN_STREAM;
    if (self->block && !manner->shared) memory_tell_address(&self->block->memory);
    Py_XINCREF(export->memory);
    Py_XINCREF(export->order);
    tensor.device = manner->device;
    if (manner->legacy)
        export->tensor.legacy = (DLManagedTensor){.dl_tensor = tensor, .manager_ctx = export, .deleter = delete_legacy};
    else
        export->tensor.versioned = (DLManagedTensorVersioned){
            .version = {DLPACK_MAJOR, DLPACK_MINOR}, .manager_ctx = export, .deleter = delete_versioned,
            .flags = manner->flags | (readonly ? DLPACK_READ_ONLY : 0), .dl_tensor = tensor,
        };
    return export;
}

static void end_versioned(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, versioned_name)) return; /* a consumer has it, or had */
    DLManagedTensorVersioned *tensor = PyCapsule_GetPointer(capsule, versioned_name);
    owner_finished_here(tensor->manager_ctx);
}

static void end_legacy(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, legacy_name)) return;
    DLManagedTensor *tensor = PyCapsule_GetPointer(capsule, legacy_name);
    owner_finished_here(tensor->manager_ctx);
}

static PyObject *capsule_of(Array *self, const Manner *manner) {
    Export *export = export_array(self, manner);
    if (!export) return NULL;
    PyObject *capsule = PyCapsule_New(&export->tensor, manner->legacy ? legacy_name : versioned_name,
                                      manner->legacy ? end_legacy : end_versioned);
    if (!capsule) owner_drop(&export->owner);
    return capsule;
}

/* The device whose stream a consumer of managed memory means; -1: it may be another one's
 * default stream, or the consumer be on the host, which names none. */
static int32_t whose_stream(const Array *source, DLDevice device, Order order, uint64_t stream) {
    int32_t own = source->array.device;
    if (device.device_type == kDLCUDA)
        return device.device_id == own || (order == BEFORE_STREAM && stream > PER_THREAD_STREAM) ? own : -1;
    if (order == DEFAULT_ORDER) return -1;
    const hamr_functions *functions = core_functions(); /* none in a child, if a finaliser forks */
    return stream > PER_THREAD_STREAM || (functions && functions->devices->cuda_count == 1) ? own : -1;
}

/* The elements for a consumer on a device, ready for it in the order asked for. Takes over source; NULL is an error. */
static Array *ordered(Array *source, DLDevice device, Order order, uint64_t stream) {
    if (!source || device.device_type == kDLCPU) {
        Array *settled = source ? array_settled(source) : NULL;
        Py_XDECREF((PyObject *)source);
        return settled;
    }
    if (order == NO_ORDER) {
        uint64_t covering;
        if (!source->block || !array_may_be_paused(source) || order_covering(source, &covering) == 0) return source;
        Py_DECREF(source);
        return NULL;
    }
    if (device.device_type == kDLCUDAHost ||
        (memory_kind(source->array.allocator) == HAMR_MANAGED && whose_stream(source, device, order, stream) < 0)) {
        Array *settled = array_settled(source);
        Py_DECREF(source);
        return settled;
    }
    uint64_t legacy = device.device_type == kDLROCM ? 0 : LEGACY_STREAM;
    if (order_before(source, order == BEFORE_STREAM ? stream : legacy) == 0) return source;
    Py_DECREF(source);
    return NULL;
}

static int is_same(DLDevice a, DLDevice b) { return a.device_type == b.device_type && a.device_id == b.device_id; }

/* Makes the error under way the cause of a BufferError, unless memory ran out. */
static void cannot_place(const Request *request) {
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return;
    PyObject *type, *cause, *traceback;
    PyErr_Fetch(&type, &cause, &traceback);
    PyErr_NormalizeException(&type, &cause, &traceback);
    if (traceback) PyException_SetTraceback(cause, traceback);
    PyErr_Format(PyExc_BufferError, "dl_device is %R, where the elements cannot be: %S", request->device_object, cause);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    PyObject *error_type, *error;
    PyErr_Fetch(&error_type, &error, &traceback);
    PyErr_NormalizeException(&error_type, &error, &traceback);
    PyException_SetCause(error, cause);
    PyErr_Restore(error_type, error, traceback);
}

static Array *copied(Array *source, DLDevice own, DLDevice device) {
    const hamr_array *array = &source->array;
    int same = is_same(own, device), on_host = device.device_type == kDLCPU;
    int32_t allocator = same ? array->allocator : on_host ? HAMR_ALLOCATOR_MALLOC : HAMR_ALLOCATOR_CUDA;
    int32_t number = same ? array->device : on_host ? HAMR_HOST_DEVICE : device.device_id;
    PyTypeObject *type = copy_type();
    return type ? array_copy(type, source, allocator, number, array->element) : NULL;
}

/* The elements where the consumer wants them. */
static Array *placed(Array *source, DLDevice own, const Request *request, DLDevice device, int *copy) {
    *copy = request->copy == 1;
    if (*copy) return copied(source, own, device);
    if (is_same(own, device)) return (Array *)Py_NewRef((PyObject *)source);
    int to_host = device.device_type == kDLCPU;
    int in_place = to_host ? (source->array.flags & HAMR_HOST_REACHABLE) || is_mapped(source->array.allocator)
        : memory_kind(source->array.allocator) == HAMR_MANAGED;
    if (request->copy == 0 && !in_place && array_count(&source->array))
        return PyErr_Format(PyExc_BufferError,
                            "copy is False and dl_device is %R: the elements are on (%d, %d), and reach there only in "
                            "a copy", request->device_object, own.device_type, own.device_id), NULL;
    Array *handle = (Array *)array_access(source, to_host ? HAMR_HOST : HAMR_CUDA, to_host ? -1 : device.device_id);
    if (handle)
        *copy = handle->block != source->block && !(handle->array.flags & HAMR_MAPPED) && array_count(&source->array);
    return handle;
}

static int check_device(const Request *request, DLDevice own) {
    DLDevice device = request->device;
    if (!request->placed || is_same(own, device)) return 0;
    if (device.device_type == kDLCPU && device.device_id == 0) {
        if (request->order == DEFAULT_ORDER) return 0;
        return RAISE(PyExc_ValueError,
                     "dl_device is %R and a stream is given: accepted is stream=None, since the host has no streams",
                     request->device_object);
    }
    if (device.device_type == kDLCUDA && device.device_id >= 0) return 0;
    return RAISE(PyExc_BufferError,
                 "dl_device is %R: accepted are (%d, %d), where the elements are, (1, 0) for the host, and (2, n) for "
                 "CUDA device n", request->device_object, own.device_type, own.device_id);
}

static int check_stream(const Request *request, DLDevice device) {
    if (request->order != BEFORE_STREAM) return 0;
    uint64_t stream = request->stream;
    if (device.device_type == kDLCPU)
        return RAISE(PyExc_ValueError, "stream is %llu: accepted is None, since the host has no streams",
                     (unsigned long long)stream);
    if (device.device_type == kDLROCM) {
        if (stream != 1 && stream != 2) return 0;
        return RAISE(PyExc_ValueError,
                     "stream is %llu: accepted are None, -1, 0 for the default stream, and handles of HIP's",
                     (unsigned long long)stream);
    }
    if (stream) return 0;
    return RAISE(PyExc_ValueError,
                 "stream is 0, which is ambiguous: accepted are None, -1, 1 for the legacy default stream, 2 for the "
                 "per-thread one, and handles of CUDA's");
}

static PyObject *export_to(Array *self, const Request *request) {
    DLDevice own;
    if (self->closed) return array_freed(self);
    if (device_of(self, &own) < 0) return NULL;
    if (!array_may_be_pending(self) && request->copy != 1 &&
        (!request->placed || is_same(own, request->device))) {
        Manner manner = {.device = own, .legacy = !request->versioned};
        return check_stream(request, own) < 0 ? NULL : capsule_of(self, &manner);
    }
    if (array_usable(self) < 0) return NULL;
    Array *source = (Array *)array_snapshot(self, array_type);
    if (!source) return NULL;
    int known = device_of(source, &own) == 0 && check_device(request, own) == 0, copy = 0;
    DLDevice device = request->placed ? request->device : own;
    if (!known || check_stream(request, device) < 0) {
        Py_DECREF(source);
        return NULL;
    }
    Array *found = placed(source, own, request, device, &copy);
    if (!found && device.device_type == kDLCUDA && !is_same(own, device)) cannot_place(request);
    Py_DECREF(source);
    found = ordered(found, device, request->order, request->stream);
    if (!found) return NULL;
    Manner manner = {
        .device = device, .flags = copy ? DLPACK_IS_COPIED : 0, .legacy = !request->versioned,
            .shared = device.device_type == kDLCUDA,
        .stream = request->order == BEFORE_STREAM ? (int64_t)request->stream : request->order == DEFAULT_ORDER
        ? LEGACY_STREAM : UNKNOWN_STREAM,
    };
    PyObject *capsule = capsule_of(found, &manner);
    Py_DECREF(found);
    return capsule;
}

DLManagedTensorVersioned *dlpack_export(Array *self) {
    Manner manner = {.shared = 0, .stream = UNKNOWN_STREAM};
    if (self->closed) return array_freed(self), NULL;
    owner_drain();
    if (array_usable(self) < 0 || device_of(self, &manner.device) < 0) return NULL;
    Export *export;
    if (!array_may_be_pending(self)) {
        export = export_array(self, &manner);
    } else {
        Array *source = (Array *)array_snapshot(self, array_type);
        if (!source || device_of(source, &manner.device) < 0) Py_CLEAR(source);
        if (!(source = ordered(source, manner.device, BEFORE_STREAM, LEGACY_STREAM))) return NULL;
        manner.shared = manner.device.device_type == kDLCUDA;
        export = export_array(source, &manner);
        Py_DECREF(source);
    }
    return export ? &export->tensor.versioned : NULL;
}

static PyObject *host_device;

int dlpack_export_setup(void) {
    if (!host_device) host_device = Py_BuildValue("(ii)", kDLCPU, 0);
    return host_device ? dlpack_request_setup() : -1;
}

PyObject *array_dlpack_device(PyObject *self, PyObject *Py_UNUSED(unused)) {
    DLDevice device;
    OPEN(self);
    if (device_of((Array *)self, &device) < 0) return NULL;
    return device.device_type == kDLCPU ? Py_NewRef(host_device) : Py_BuildValue("(ii)", device.device_type,
                                                                                 device.device_id);
}

PyObject *array_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names) {
    Request request;
    if (dlpack_request_read(&request, arguments, n, names) < 0) return NULL;
    owner_drain(); /* what threads without Python are done with: the interpreter may be long in asking */
    return export_to((Array *)self, &request);
}
