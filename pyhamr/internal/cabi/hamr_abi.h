/* What the Python extension and the Go core say to each other besides gopy's
 * functions: one description of an array, and the few calls that are made so
 * often, or from such places (a destructor, a thread without Python), that they
 * go straight from C to Go. */
#ifndef HAMR_ABI_H
#define HAMR_ABI_H

#include <stdint.h>

#include "hamr/allocators.h"
#include "hamr/types.h"

#define HAMR_ABI_VERSION 7
#define HAMR_MAX_DIMENSIONS 64

#define HAMR_HOST_DEVICE (-1)
#define HAMR_EVERY_STREAM UINT64_MAX /* for leave: backends.EveryStream */
#define HAMR_READ_ONLY 1u
#define HAMR_REACHABLE(space) (2u << (space)) /* code in the space can touch the memory in place */
#define HAMR_HOST_REACHABLE HAMR_REACHABLE(HAMR_HOST)

#define HAMR_MAPPED 0x10000u /* the host's view of memory that a device has again when its last reference goes */

#define HAMR_OWN_WORK 2u /* in marks: clear only while no work of hamr's is pending */

enum { HAMR_ALLOCATOR_ANY = -1, HAMR_ALLOCATORS = 32 /* the most that there may be */ };

/* An array in some memory. The Python object that holds it owns `memory`, one
 * reference in the Go core; 0 means that the core does not know it (yet). */
typedef struct hamr_array {
    uint64_t memory;     /* token of the Go core's reference */
    uint64_t base;       /* where the allocation starts */
    uint64_t size;       /* bytes in the allocation */
    uint64_t pointer;    /* where element zero is */
    int64_t capacity;    /* elements that fit from pointer on */
    uint64_t stream;
    uint64_t marks;      /* address of a uint32_t that is 0 only while no work is
                          * pending on the memory; 0: the core does not know it */
    int32_t allocator;   /* backends.Allocator */
    int32_t device;      /* owner, or HAMR_HOST_DEVICE */
    int32_t element;     /* hamr_element_type */
    int32_t transfer;    /* gobuffer.Transfer */
    uint32_t flags;
    int32_t ndim;
    int32_t stream_of;   /* an allocator of the runtime that stream is of, where that of the memory does not say */
    int32_t reserved;
    int64_t *shape;      /* ndim entries */
    int64_t *strides;    /* ndim entries, bytes */
} hamr_array;

/* What C may know of CUDA without asking Go. All zero until CUDA was first used. */
typedef struct hamr_devices {
    int32_t cuda_count;
    int (*cuda_current)(int *device); /* cuCtxGetDevice */
    int (*cuda_attributes)(unsigned count, int *attributes, void **values, uint64_t pointer); /* cuPointerGetAttributes */
    int (*cuda_context)(void **context);                     /* cuCtxGetCurrent */
    int (*cuda_query)(uint64_t stream);                      /* cuStreamQuery */
    int (*cuda_capturing)(uint64_t stream, int *status);     /* cuStreamIsCapturing, or NULL */
    int (*cuda_event)(void **event, unsigned flags);         /* cuEventCreate */
    int (*cuda_record)(void *event, uint64_t stream);        /* cuEventRecord */
    int (*cuda_wait)(uint64_t stream, void *event, unsigned flags); /* cuStreamWaitEvent */
    void *const volatile *cuda_contexts; /* the devices' primary contexts; NULL where the core has not used the device */
} hamr_devices;

/* Called by the core, from any thread, when it has no more use for foreign
 * memory that was adopted under this key. */
typedef void (*hamr_finished_function)(uint64_t key);

/* Results of type char* are NULL, or an error message to be freed with free(). */
typedef struct hamr_functions {
    uint32_t version;
    /* Takes allocator, device, element, stream, transfer, ndim and shape, and
     * sets the rest. value, if not NULL, is one element of type value_element
     * that the new elements hold. */
    char *(*create)(hamr_array *array, void *value, int32_t value_element);
    /* Makes array->memory a reference to memory that exists. key 0: it came from
     * array->allocator and is freed there; else it is foreign. */
    char *(*adopt)(hamr_array *array, uint64_t key, hamr_finished_function finished);
    /* Drops a reference. Safe from any thread, with or without the GIL. */
    void (*release)(uint64_t memory);
    /* adopt for memory of a device. array->allocator HAMR_ALLOCATOR_ANY: the
     * runtimes are asked whose it is. What uses the memory through hamr runs after
     * what the owner's stream holds now, unless that is 0. */
    char *(*adopt_device)(hamr_array *array, uint64_t key, hamr_finished_function finished, uint64_t producer);
    /* Describes at result where code in a space can touch the elements; device -1
     * is the current one. */
    char *(*access)(hamr_array *array, int32_t space, int32_t device, hamr_array *result);
    /* Copies elements to ordinary host memory of size bytes, in C order, and sets
     * done; where that takes more than one copy of bytes, nothing happens. */
    char *(*read)(hamr_array *array, void *target, int64_t size, int32_t *done);
    /* Sets stream to one that covers all work pending on the elements, or 0. */
    char *(*covering)(hamr_array *array, uint64_t *stream);
    /* Makes everybody who uses the memory, and its release, run after what a stream
     * holds now, which nobody will name any more; HAMR_EVERY_STREAM: the release of
     * memory that is freed in stream order waits for all that the device does then,
     * which may take long. */
    char *(*leave)(uint64_t memory, uint64_t stream);
    /* leave for destructors. */
    void (*release_after)(uint64_t memory, uint64_t stream);
    /* Makes what is enqueued on a stream of the memory's device from now on run after
     * all work pending on the elements. */
    char *(*order_before)(hamr_array *array, uint64_t stream);
    const hamr_devices *devices;
} hamr_functions;

#endif
