/* What the Python extension and the Go core say to each other besides gopy's
 * functions: one description of an array, and the few calls that are made so
 * often, or from such places (a destructor, a thread without Python), that they
 * go straight from C to Go. */
#ifndef HAMR_ABI_H
#define HAMR_ABI_H

#include <stdint.h>

#define HAMR_ABI_VERSION 1
#define HAMR_MAX_DIMENSIONS 64

#define HAMR_HOST_DEVICE (-1)
#define HAMR_READ_ONLY 1u
#define HAMR_HOST_REACHABLE 2u /* the host can touch the memory in place */

/* An array in some memory. The Python object that holds it owns `memory`, one
 * reference in the Go core; 0 means that the core does not know it (yet). */
typedef struct hamr_array {
    uint64_t memory;     /* token of the Go core's reference */
    uint64_t base;       /* where the allocation starts */
    uint64_t size;       /* bytes in the allocation */
    uint64_t pointer;    /* where element zero is */
    int64_t capacity;    /* elements that fit from pointer on */
    uint64_t stream;
    int32_t allocator;   /* backends.Allocator */
    int32_t device;      /* owner, or HAMR_HOST_DEVICE */
    int32_t element;     /* arrayiface.ElementType */
    int32_t transfer;    /* gobuffer.Transfer */
    uint32_t flags;
    int32_t ndim;
    int64_t *shape;      /* ndim entries */
    int64_t *strides;    /* ndim entries, bytes */
} hamr_array;

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
} hamr_functions;

#endif
