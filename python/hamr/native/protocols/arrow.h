/* The structs of Arrow's C data interface, C device data interface and C stream interface, by the names of their
 * specifications: https://arrow.apache.org/docs/format/CDataInterface.html
 * https://arrow.apache.org/docs/format/CDeviceDataInterface.html
 * https://arrow.apache.org/docs/format/CStreamInterface.html
 *
 * Whoever holds a struct moves it by copying its bytes and clearing release in the place it leaves; release NULL
 * therefore marks a struct that holds nothing. */
#pragma once

#include <stdint.h>

#define ARROW_FLAG_NULLABLE 2

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;     /* elements, from offset on */
    int64_t null_count; /* -1: not known */
    int64_t offset;     /* elements in the buffers before the first */
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

enum {
    ARROW_DEVICE_CPU = 1,
    ARROW_DEVICE_CUDA = 2,
    ARROW_DEVICE_CUDA_HOST = 3,
    ARROW_DEVICE_ROCM = 10,
    ARROW_DEVICE_ROCM_HOST = 11,
    ARROW_DEVICE_CUDA_MANAGED = 13,
};

struct ArrowDeviceArray {
    struct ArrowArray array;
    int64_t device_id; /* -1 where the type of device has no numbers */
    int32_t device_type;
    void *sync_event;  /* a pointer to CUDA's event; NULL: nothing is to be waited for */
    int64_t reserved[3];
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *); /* 0, or an errno */
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *); /* 0, or an errno; a released array is the end */
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#define ARROW_SCHEMA "arrow_schema"
#define ARROW_ARRAY "arrow_array"
#define ARROW_DEVICE_ARRAY "arrow_device_array"
#define ARROW_STREAM "arrow_array_stream"
