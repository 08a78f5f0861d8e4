/* The C exchange API of DLPack 1.3: what __dlpack__ and hamr.buffer() do, for callers in
 * C that look for it on the type. */
#include "protocols/dlpack_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "array/copy.h"
#include "base/exclusive.h"
#include "base/lock.h"
#include "base/python.h"
#include "base/streams.h"
#include "core/core.h"
#include "core/relief.h"
#include "memory/block.h"
#include "plain/allocators.h"
#include "plain/dlpack.h"
#include "plain/layout.h"
#include "protocols/dlpack_export.h"
#include "protocols/dlpack_import.h"

#define ALIGNMENT 256 /* bytes; what DLPack asks for */
#define SYNC_HOST 1   /* gobuffer.Transfer: what hamr.buffer() does */

static int from_object(void *object, DLManagedTensorVersioned **tensor) {
    *tensor = NULL;
    if (PyObject_TypeCheck((PyObject *)object, array_type)) {
        *tensor = dlpack_export(object);
    } else {
        PyErr_Format(PyExc_TypeError, "%R is not a hamr.Buffer or hamr.Handle", object);
    }
    return *tensor ? 0 : -1;
}

/* The work that a consumer leaves behind is on the stream that current_stream names. */
static int to_object(DLManagedTensorVersioned *tensor, void **object) {
    *object = NULL;
    PyTypeObject *type = copy_type();
    if (!type) {
        if (tensor->deleter) tensor->deleter(tensor);
        return -1;
    }
    int on_host = tensor->version.major == DLPACK_MAJOR && tensor->dl_tensor.device.device_type == kDLCPU;
    *object = dlpack_adopt(type, tensor, 0, SYNC_HOST, on_host ? 0 : LEGACY_STREAM);
    return *object ? 0 : -1;
}

static int from_object_in_section(void *object, DLManagedTensorVersioned **tensor) {
    int made;
    EXCLUSIVE_BEGIN
    made = from_object(object, tensor);
    EXCLUSIVE_END
    return made;
}

static int to_object_in_section(DLManagedTensorVersioned *tensor, void **object) {
    int made;
    EXCLUSIVE_BEGIN
    made = to_object(tensor, object);
    EXCLUSIVE_END
    return made;
}

/* NULL is CUDA's legacy default stream, which all of hamr's work is ordered with. */
static int current_stream(int32_t device_type, int32_t device_id, void **stream) {
    *stream = NULL;
    if (device_id >= 0 && (device_type == kDLCPU || device_type == kDLCUDA || device_type == kDLCUDAHost ||
                           device_type == kDLCUDAManaged))
        return 0;
    return RAISE(PyExc_BufferError, "hamr has no stream for device (%d, %d): accepted are the host and CUDA devices",
                 (int)device_type, (int)device_id);
}

/* Memory that a consumer asked for: taken and given back on any thread, without Python. */
typedef struct {
    DLManagedTensorVersioned tensor;
    hamr_array array;
    uint64_t generation;
    void *heap; /* where the core was not there to take the memory */
    int64_t dimensions[];
} Allocation;

static void delete_allocation(DLManagedTensorVersioned *tensor) {
    Allocation *allocation = tensor->manager_ctx;
    const hamr_functions *functions = core_functions();
    const hamr_array *array = &allocation->array;
    int known = array->memory && functions && allocation->generation == core_generation;
    if (known && is_of_device(array->allocator) && lock_held()) {
        /* The device may be waiting for a callback in Python. */
        Py_BEGIN_ALLOW_THREADS
        block_release_unseen(array->allocator, array->memory);
        Py_END_ALLOW_THREADS
    } else if (known) block_release_unseen(array->allocator, array->memory);
    else if (array->memory && array->base) core_free_directly(array->allocator, array->base);
    free(allocation->heap);
    free(allocation);
}

typedef struct {
    void *context;
    void (*set)(void *context, const char *kind, const char *message);
} Complaint;

static int complain(const Complaint *complaint, const char *kind, const char *message) {
    complaint->set(complaint->context, kind, message);
    return -1;
}

static int complain_of(const Complaint *complaint, hamr_error *error) {
    const char *kind = error->kind == HAMR_OUT_OF_MEMORY ? "MemoryError"
                       : error->kind == HAMR_VALUE_ERROR ? "ValueError"
                       : error->kind == HAMR_TYPE_ERROR  ? "TypeError"
                                                         : "RuntimeError";
    complain(complaint, kind, error->message);
    free(error);
    return -1;
}

/* The last is malloc for the host, and may be given back by anybody but the pools. */
static int32_t allocator_for(DLDevice device) {
    int32_t found = HAMR_ALLOCATOR_ANY;
    for (int32_t i = 0; i < HAMR_ALLOCATOR_COUNT; i++)
        if (allocator_table[i].dlpack == (int)device.device_type && !allocator_table[i].ordered &&
            (found < 0 || !is_of_device(i)))
            found = i;
    return device.device_type == kDLROCM ? HAMR_ALLOCATOR_ANY : found;
}

/* The bytes of all elements, or -1 where they are too many. */
static int64_t size_of(const DLTensor *prototype, int size) {
    int64_t bytes = size;
    int empty = 0;
    for (int i = 0; i < prototype->ndim; i++) {
        int64_t n = prototype->shape[i];
        if (n < 0 || __builtin_mul_overflow(bytes, n ? n : 1, &bytes)) return -1;
        empty |= n == 0;
    }
    return empty ? 0 : bytes > INT64_MAX - ALIGNMENT ? -1 : bytes;
}

static int take_memory(Allocation *allocation, int64_t bytes, const Complaint *complaint) {
    hamr_array *array = &allocation->array;
    const hamr_functions *functions = core_functions();
    if (functions) {
        hamr_error *error;
        Relief relief = lock_held() ? relief_begin() : (Relief){0};
        do {
            error = core_functions()->create(array, NULL, 0);
        } while (error && lock_held() && core_relieves(&relief, &error, NULL));
        relief_end(&relief);
        return error ? complain_of(complaint, error) : 0;
    }
    if (is_of_device(array->allocator))
        return complain(complaint, "RuntimeError", "hamr has not used a device yet: make a hamr.Buffer there first");
    array_c_strides(array);
    if (!bytes) return 0;
    allocation->heap = aligned_alloc(ALIGNMENT, ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    array->pointer = (uint64_t)(uintptr_t)allocation->heap;
    return allocation->heap ? 0 : complain(complaint, "MemoryError", "no memory is left for a tensor");
}

static int allocate(DLTensor *prototype, DLManagedTensorVersioned **tensor, void *context,
                    void (*set_error)(void *, const char *, const char *)) {
    const Complaint complaint = {context, set_error};
    *tensor = NULL;
    DLDataType type = prototype->dtype;
    int32_t element = element_from_dlpack(type.code, type.bits, type.lanes),
        allocator = allocator_for(prototype->device);
    if (!element) return complain(&complaint, "TypeError", "the prototype's dtype is none of hamr's element types");
    if (allocator == HAMR_ALLOCATOR_ANY)
        return complain(&complaint, "BufferError", "the prototype's device is neither the host nor CUDA's");
    if (prototype->ndim < 0 || prototype->ndim > HAMR_MAX_DIMENSIONS)
        return complain(&complaint, "ValueError", "the prototype's ndim is not in 0 ... 64");
    int64_t bytes = size_of(prototype, element_facts(element)->size);
    if (bytes < 0) return complain(&complaint, "ValueError", "the prototype's shape is negative or too large");
    Allocation *allocation = calloc(1,
                                    sizeof *allocation + 2 * (size_t)prototype->ndim * sizeof *allocation->dimensions);
    if (!allocation) return complain(&complaint, "MemoryError", "no memory is left for a tensor");
    hamr_array *array = &allocation->array;
    array->allocator = allocator;
    array->device = memory_kind(allocator) == HAMR_DEVICE_ONLY || memory_kind(allocator) == HAMR_MANAGED
        ? prototype->device.device_id : HAMR_HOST_DEVICE;
    array->element = element;
    array->transfer = SYNC_HOST;
    array->ndim = prototype->ndim;
    array->shape = allocation->dimensions;
    array->strides = allocation->dimensions + array->ndim;
    allocation->generation = core_generation;
    if (array->ndim) memcpy(array->shape, prototype->shape, (size_t)array->ndim * sizeof *array->shape);
    if (take_memory(allocation, bytes, &complaint) < 0) {
        free(allocation);
        return -1;
    }
    for (int i = 0; i < array->ndim; i++) array->strides[i] /= element_facts(element)->size;
    allocation->tensor = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR, DLPACK_MINOR}, .manager_ctx = allocation, .deleter = delete_allocation,
        .dl_tensor = {.data = bytes ? (void *)(uintptr_t)array->pointer : NULL, .device = prototype->device,
                      .ndim = array->ndim,
                      .dtype = type, .shape = array->shape, .strides = array->strides},
    };
    *tensor = &allocation->tensor;
    return 0;
}

static DLPackExchangeAPI table = {
    .header = {.version = {DLPACK_MAJOR, DLPACK_MINOR}},
    .managed_tensor_allocator = allocate,
    .managed_tensor_from_py_object_no_sync = from_object_in_section,
    .managed_tensor_to_py_object_no_sync = to_object_in_section,
    .current_work_stream = current_stream,
};

int dlpack_exchange_setup(void) {
    static int done;
    if (dlpack_export_setup() < 0) return -1;
    if (done) return 0;
    PyObject *capsule = PyCapsule_New(&table, "dlpack_exchange_api", NULL);
    done = capsule && PyObject_SetAttrString((PyObject *)array_type, "__dlpack_c_exchange_api__", capsule) == 0;
    Py_XDECREF(capsule);
    return done ? 0 : -1;
}
