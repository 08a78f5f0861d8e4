/* The structs of DLPack 1.3, https://dmlc.github.io/dlpack/latest/c_api.html, as far as
 * hamr uses them, by the names they have there. */
#pragma once

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 3 };

typedef struct DLPackVersion {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLOpenCL = 4, kDLROCM = 10, kDLROCMHost = 11, kDLCUDAManaged = 13,
      kDLOneAPI = 14 };

typedef struct DLDevice {
    int32_t device_type;
    int32_t device_id;
} DLDevice;

typedef struct DLDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* elements, not bytes */
    uint64_t byte_offset;
} DLTensor;

/* The struct before version 1, without flags: capsules named "dltensor". */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

enum { DLPACK_READ_ONLY = 1, DLPACK_IS_COPIED = 2, DLPACK_SUBBYTE_PADDED = 4 };

/* Capsules named "dltensor_versioned". Of another major version only the first three fields are known. */
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

typedef struct DLPackExchangeAPIHeader {
    DLPackVersion version;
    struct DLPackExchangeAPIHeader *prev_api;
} DLPackExchangeAPIHeader;

/* A capsule "dlpack_exchange_api" of it is the type's __dlpack_c_exchange_api__.
 * Results are 0, or -1 with an exception. */
typedef struct DLPackExchangeAPI {
    DLPackExchangeAPIHeader header;
    int (*managed_tensor_allocator)(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_context,
                                    void (*set_error)(void *error_context, const char *kind, const char *message));
    int (*managed_tensor_from_py_object_no_sync)(void *object, DLManagedTensorVersioned **out);
    int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned *tensor, void **object);
    int (*dltensor_from_py_object_no_sync)(void *object, DLTensor *out); /* may be NULL */
    int (*current_work_stream)(int32_t device_type, int32_t device_id, void **stream);
} DLPackExchangeAPI;
