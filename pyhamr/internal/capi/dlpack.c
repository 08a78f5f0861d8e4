/* Tensors of DLPack, https://dmlc.github.io/dlpack/latest/c_api.html, given out and taken. */
#include "plain/dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "plain/tensor.h"

/* What a consumer holds. */
typedef struct {
    Share *share;
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor old;
    } tensor;
    int64_t dimensions[];
} Export;

static void finish(Export *export) {
    if (export->share) {
        share_leave(export->share);
        share_end(export->share, export->share->memory.stream);
    }
    free(export);
}

static void delete_versioned(DLManagedTensorVersioned *tensor) { finish(tensor->manager_ctx); }

static void delete_old(DLManagedTensor *tensor) { finish(tensor->manager_ctx); }

static hamr_status order(const hamr_buffer *buffer, const hamr_array *array, void *stream) {
    if (stream == HAMR_NO_ORDER) return HAMR_OK;
    return stream && is_of_device(array->allocator) ? capi_order_before(buffer, stream) : capi_synchronize(buffer);
}

static hamr_status export_to(const hamr_buffer *buffer, void *stream, int versioned, Export **made) {
    DLTensor tensor;
    USE(buffer, array);
    int32_t device = dlpack_type_of(array.allocator);
    if (!device)
        return fail(HAMR_ERROR_VALUE,
                    "DLPack has no device for memory of allocator %d: access for the host and copy bring the elements "
                    "there",
                    array.allocator);
    if (!versioned && array.flags & HAMR_READ_ONLY)
        return fail(HAMR_ERROR_VALUE,
                    "the buffer is read-only, which DLPack could not say before version 1: accepted is to_dlpack");
    Export *export = malloc(sizeof *export + 2 * (size_t)array.ndim * sizeof *export->dimensions);
    if (!export) return fail(HAMR_ERROR_MEMORY, "no memory for a tensor");
    int i = tensor_fill(&tensor, &array, device, export->dimensions);
    hamr_status status = i < 0 ? order(buffer, &array, stream)
                               : fail(HAMR_ERROR_VALUE,
                                      "strides has %lld bytes in dimension %d: DLPack counts elements, here of %lld "
                                      "bytes; "
                                                        "copy makes a buffer in C order",
                                      (long long)array.strides[i], i, (long long)element_size(array.element));
    if (status) {
        free(export);
        return status;
    }
    export->share = buffer->held.share;
    if (export->share) atomic_fetch_add(&export->share->users, 1);
    if (versioned)
        export->tensor.versioned = (DLManagedTensorVersioned){
            .version = {DLPACK_MAJOR, DLPACK_MINOR}, .manager_ctx = export, .deleter = delete_versioned,
            .flags = array.flags & HAMR_READ_ONLY ? DLPACK_READ_ONLY : 0, .dl_tensor = tensor,
        };
    else
        export->tensor.old = (DLManagedTensor){.dl_tensor = tensor, .manager_ctx = export, .deleter = delete_old};
    *made = export;
    return HAMR_OK;
}

hamr_status capi_to_dlpack(const hamr_buffer *buffer, void *stream, struct DLManagedTensorVersioned **made) {
    Export *export;
    CHECK_RESULT(made, "made");
    hamr_status status = export_to(buffer, stream, 1, &export);
    if (!status) *made = &export->tensor.versioned;
    return status;
}

hamr_status capi_to_old_dlpack(const hamr_buffer *buffer, void *stream, struct DLManagedTensor **made) {
    Export *export;
    CHECK_RESULT(made, "made");
    hamr_status status = export_to(buffer, stream, 0, &export);
    if (!status) *made = &export->tensor.old;
    return status;
}

/* Nothing that a tensor says is trusted but its addresses. */
static hamr_status read_tensor(const DLTensor *tensor, Draft *draft) {
    int32_t element;
    hamr_array *array = &draft->array;
    draft_start(draft);
    hamr_status status = keep(capi_functions()->parse_dlpack(tensor->dtype.code, tensor->dtype.bits,
                                                             tensor->dtype.lanes, &element));
    if (!status) status = draft_shape(draft, element, tensor->ndim, tensor->shape);
    if (!status && !tensor->strides) status = draft_c_strides(draft);
    int i = !status && tensor->strides ? tensor_read_strides(tensor, array) : -1;
    if (i >= 0)
        return fail(HAMR_ERROR_VALUE,
                    "strides has %lld elements in dimension %d: accepted are those whose bytes fit in 64 bits",
                    (long long)tensor->strides[i], i);
    if (status) return status;
    /* NULL stays NULL whatever the offset, so that the core refuses it for elements. */
    if (tensor->data && __builtin_add_overflow((uint64_t)(uintptr_t)tensor->data, tensor->byte_offset, &array->pointer))
        return fail(HAMR_ERROR_VALUE, "byte_offset is %llu: accepted are those inside the address space",
                    (unsigned long long)tensor->byte_offset);
    array->device = HAMR_HOST_DEVICE;
    array->transfer = HAMR_SYNC_HOST;
    switch (tensor->device.device_type) {
    case kDLCPU: array->allocator = HAMR_ALLOCATOR_MALLOC; return HAMR_OK;
    case kDLROCM:
        array->allocator = HAMR_ALLOCATOR_HIP;
        array->device = tensor->device.device_id;
        return HAMR_OK;
    case kDLROCMHost: array->allocator = HAMR_ALLOCATOR_HIP_HOST; return HAMR_OK;
    case kDLCUDA:
    case kDLCUDAHost:
    case kDLCUDAManaged: array->allocator = HAMR_ALLOCATOR_ANY; return HAMR_OK;
    default:
        return fail(HAMR_ERROR_VALUE,
                    "device is (%d, %d): accepted are CPU (1), CUDA (2), CUDAHost (3), ROCm (10), ROCmHost (11) and "
                    "CUDAManaged (13)",
                    tensor->device.device_type, tensor->device.device_id);
    }
}

static hamr_status adopt(const DLTensor *tensor, int read_only, hamr_deleter deleter, void *managed, void *producer,
                         hamr_buffer **made) {
    Draft draft;
    CAPI_LOAD();
    hamr_status status = read_tensor(tensor, &draft);
    if (status) return status;
    if (read_only) draft.array.flags |= HAMR_READ_ONLY;
    hamr_array plain = draft.array;
    status = adopt_foreign(&draft, deleter, managed, (uint64_t)(uintptr_t)producer, made);
    /* What is said to be page-locked, and no driver knows as that, is memory like any other. */
    int pinned = tensor->device.device_type == kDLCUDAHost || tensor->device.device_type == kDLROCMHost;
    if (!pinned || (status != HAMR_ERROR_UNAVAILABLE && status != HAMR_ERROR_VALUE)) return status;
    draft.array = plain;
    draft.array.allocator = HAMR_ALLOCATOR_MALLOC;
    return adopt_foreign(&draft, deleter, managed, 0, made);
}

static void end_versioned(void *data, void *context) {
    DLManagedTensorVersioned *tensor = context;
    (void)data;
    if (tensor->deleter) tensor->deleter(tensor);
}

static void end_old(void *data, void *context) {
    DLManagedTensor *tensor = context;
    (void)data;
    if (tensor->deleter) tensor->deleter(tensor);
}

hamr_status capi_from_dlpack(struct DLManagedTensorVersioned *tensor, void *producer, hamr_buffer **made) {
    CHECK_RESULT(made, "made");
    if (!tensor) return fail(HAMR_ERROR_VALUE, "tensor is NULL: accepted is a DLManagedTensorVersioned");
    if (tensor->version.major != DLPACK_MAJOR)
        return fail(HAMR_ERROR_VALUE, "the tensor is of DLPack %u.%u: accepted is version %d", tensor->version.major,
                    tensor->version.minor, DLPACK_MAJOR);
    return adopt(&tensor->dl_tensor, (tensor->flags & DLPACK_READ_ONLY) != 0, end_versioned, tensor, producer, made);
}

hamr_status capi_from_old_dlpack(struct DLManagedTensor *tensor, void *producer, hamr_buffer **made) {
    CHECK_RESULT(made, "made");
    if (!tensor) return fail(HAMR_ERROR_VALUE, "tensor is NULL: accepted is a DLManagedTensor");
    return adopt(&tensor->dl_tensor, 0, end_old, tensor, producer, made);
}
