/* The consumer of DLPack: a tensor of another library becomes an array. Nothing that a
 * tensor says is trusted but its addresses. dlpack_ask.c asks for tensors. */
#include "protocols/dlpack_import.h"

#include <string.h>

#include "array/adopt.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "memory/owner.h"
#include "plain/dlpack.h"
#include "plain/layout.h"
#include "plain/tensor.h"
#include "protocols/dlpack_device.h"

#define VERSIONED "dltensor_versioned"
#define UNVERSIONED "dltensor"

/* Raises the TypeError of the core, which has the words. */
static int refuse_type(DLDataType type) {
    int32_t element;
    if (core_load() < 0) return -1;
    hamr_error *error = core_functions()->parse_dlpack(type.code, type.bits, type.lanes, &element);
    if (error) return core_raise(error);
    return RAISE(PyExc_TypeError, "dtype is (code %d, bits %d, lanes %d): hamr has no such element type", type.code,
                 type.bits, type.lanes);
}

static int read_strides(const DLTensor *tensor, hamr_array *array) {
    int dimension = tensor_read_strides(tensor, array);
    if (dimension < 0) return 0;
    return RAISE(PyExc_ValueError,
                 "strides has %lld elements in dimension %d: accepted are those whose bytes fit in 64 bits",
                 (long long)tensor->strides[dimension], dimension);
}

/* Fills draft, or raises. What takes the whole layout to tell, the core checks. */
static int read_tensor(const DLTensor *tensor, int readonly, Draft *draft) {
    hamr_array *array = &draft->array;
    if (dlpack_check_device(tensor->device.device_type, tensor->device.device_id) < 0) return -1;
    if (tensor->ndim < 0 || tensor->ndim > HAMR_MAX_DIMENSIONS)
        return RAISE(PyExc_ValueError, "ndim is %d: accepted are 0 ... %d", tensor->ndim, HAMR_MAX_DIMENSIONS);
    if (tensor->ndim && !tensor->shape)
        return RAISE(PyExc_ValueError, "shape is NULL: accepted is the address of the %d dimensions", tensor->ndim);
    array->element = element_from_dlpack(tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
    if (!array->element) return refuse_type(tensor->dtype);
    array->ndim = tensor->ndim;
    if (array->ndim) memcpy(array->shape, tensor->shape, (size_t)array->ndim * sizeof *array->shape);
    if (!tensor->strides) array_c_strides(array); /* as it was allowed to be before 1.2 */
    else if (read_strides(tensor, array) < 0) return -1;
    /* NULL stays NULL whatever the offset, so that the core refuses it for elements. */
    if (tensor->data && __builtin_add_overflow((uint64_t)(uintptr_t)tensor->data, tensor->byte_offset, &array->pointer))
        return RAISE(PyExc_ValueError,
                     "byte_offset is %llu: accepted are those inside the address space, which data at %p is in",
                     (unsigned long long)tensor->byte_offset, tensor->data);
    if (readonly) array->flags |= HAMR_READ_ONLY;
    return 0;
}

static PyObject *adopt_read(PyTypeObject *type, DLDevice device, Draft *draft, Owner *owner, uint64_t producer) {
    switch (device.device_type) {
    case kDLCUDA:
    case kDLCUDAManaged:
        return adopt_cuda_memory(type, draft, owner, producer);
    case kDLCUDAHost:
        return draft_adopt_pinned(type, draft, owner, HAMR_ALLOCATOR_ANY);
    case kDLROCMHost:
        return draft_adopt_pinned(type, draft, owner, HAMR_ALLOCATOR_HIP_HOST);
    case kDLROCM:
        draft->array.allocator = HAMR_ALLOCATOR_HIP;
        draft->array.device = device.device_id;
        return draft_adopt_device(type, draft, owner, 0); /* HIP's default stream has no number but 0 */
    default:
        return draft_adopt_host(type, draft, owner);
    }
}

static void finish_versioned(void *memory) {
    DLManagedTensorVersioned *tensor = memory;
    if (tensor->deleter) tensor->deleter(tensor);
}

static void finish_unversioned(void *memory) {
    DLManagedTensor *tensor = memory;
    if (tensor->deleter) tensor->deleter(tensor);
}

static int check_version(DLPackVersion version) {
    if (version.major == DLPACK_MAJOR) return 0;
    return RAISE(PyExc_BufferError, "the tensor is of DLPack %u.%u: accepted is version %d", version.major,
                 version.minor, DLPACK_MAJOR);
}

static int check_copied(uint64_t flags, int never_copied) {
    if (!never_copied || !(flags & DLPACK_IS_COPIED)) return 0;
    return RAISE(PyExc_BufferError, "copy is False: the producer made a copy all the same");
}

static void start(Draft *draft, const Adoption *adoption) {
    draft_start(draft);
    draft->array.allocator = HAMR_ALLOCATOR_MALLOC;
    draft->array.device = HAMR_HOST_DEVICE;
    draft->array.stream = adoption->stream;
    draft->array.transfer = adoption->transfer;
}

PyObject *dlpack_adopt_tensor(const Adoption *adoption, DLManagedTensorVersioned *tensor) {
    Draft draft;
    Owner *owner = owner_of_memory(tensor, finish_versioned);
    if (!owner) {
        finish_versioned(tensor);
        return NULL;
    }
    start(&draft, adoption);
    if (check_version(tensor->version) < 0 || check_copied(tensor->flags, adoption->never_copied) < 0 ||
        read_tensor(&tensor->dl_tensor, (tensor->flags & DLPACK_READ_ONLY) || adoption->immutable, &draft) < 0) {
        owner_drop(owner);
        return NULL;
    }
    return adopt_read(adoption->type, tensor->dl_tensor.device, &draft, owner, adoption->producer);
}

PyObject *dlpack_adopt(PyTypeObject *type, DLManagedTensorVersioned *tensor, uint64_t stream, int32_t transfer,
                       uint64_t producer) {
    Adoption adoption = {.type = type, .stream = stream, .transfer = transfer, .producer = producer};
    return dlpack_adopt_tensor(&adoption, tensor);
}

/* What a capsule holds, and whether it has a version; NULL with an exception. */
static void *open_capsule(PyObject *capsule, int *versioned) {
    const char *name = PyCapsule_GetName(capsule);
    *versioned = name && strcmp(name, VERSIONED) == 0;
    if (*versioned || (name && strcmp(name, UNVERSIONED) == 0)) return PyCapsule_GetPointer(capsule, name);
    if (name && strncmp(name, "used_" UNVERSIONED, strlen("used_" UNVERSIONED)) == 0)
        PyErr_SetString(PyExc_ValueError,
                        "the DLPack capsule was consumed already: accepted is one that nobody has taken the tensor "
                        "from");
    else
        PyErr_Format(PyExc_TypeError, "the capsule is named %s: accepted are " UNVERSIONED " and " VERSIONED,
                     name ? name : "NULL");
    return NULL;
}

/* A capsule that is refused keeps its name, so that its destructor ends the tensor. While
 * the core is asked, which may let other threads run, it is used, and nobody else's. */
PyObject *dlpack_adopt_capsule(const Adoption *adoption, PyObject *capsule) {
    Draft draft;
    int versioned;
    void *memory = open_capsule(capsule, &versioned);
    if (!memory) return NULL;
    const char *name = PyCapsule_GetName(capsule), *used = versioned ? "used_" VERSIONED : "used_" UNVERSIONED;
    const DLTensor *tensor = &((DLManagedTensor *)memory)->dl_tensor;
    uint64_t flags = 0;
    if (versioned) {
        DLManagedTensorVersioned *managed = memory;
        DLPackVersion version = managed->version;
        if (version.major != DLPACK_MAJOR) {
            if (PyCapsule_SetName(capsule, used) == 0) finish_versioned(memory);
            check_version(version);
            return NULL;
        }
        tensor = &managed->dl_tensor;
        flags = managed->flags;
    }
    start(&draft, adoption);
    if (check_copied(flags, adoption->never_copied) < 0 ||
        read_tensor(tensor, (flags & DLPACK_READ_ONLY) || adoption->immutable, &draft) < 0)
        return NULL;
    DLDevice device = tensor->device;
    Owner *owner = owner_of_memory(NULL, versioned ? finish_versioned : finish_unversioned);
    if (!owner) return NULL;
    if (PyCapsule_SetName(capsule, used) < 0) {
        owner_drop(owner);
        return NULL;
    }
    PyObject *array = adopt_read(adoption->type, device, &draft, owner, adoption->producer);
    if (array) owner->memory = memory; /* from now on the array's to end */
    else PyCapsule_SetName(capsule, name);
    return array;
}
