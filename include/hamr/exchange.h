/* How Python's extension and the functions of hamr.h give each other memory: an agreement between the
 * two libraries of one hamr, which changes with HAMR_ABI_VERSION. Programs use hamr/python.h. */
#ifndef HAMR_EXCHANGE_H
#define HAMR_EXCHANGE_H

#include "hamr/functions.h"
#include "hamr/interface.h"

/* One reference in the core, and how many use it: buffers of C's and Blocks of Python's. */
struct Share;

typedef struct hamr_exchange {
    uint32_t version; /* HAMR_ABI_VERSION */
    const hamr_table *(*table)(void);         /* whose buffers these are */
    const hamr_functions *(*functions)(void); /* of the core, which is started if need be; NULL: it cannot be */
    /* Describes a buffer at array, whose shape and strides are the buffer's own. The caller becomes a user
     * of share, which is NULL where there is no memory. foreign: somebody else frees it. */
    hamr_status (*lend)(const hamr_buffer *buffer, hamr_array *array, struct Share **share, int32_t *foreign);
    /* A new buffer, which becomes a user of share. */
    hamr_status (*take)(const hamr_array *array, struct Share *share, hamr_buffer **made);
    /* Takes over array->memory for a first user. After an error it is the caller's still. */
    hamr_status (*share)(const hamr_array *array, int32_t foreign, struct Share **made);
    /* Calls finished, on any thread, after the memory was given back. Not by two threads at once. */
    hamr_status (*keep)(struct Share *share, uint64_t key, hamr_finished_function finished);
    /* Of one user, who was on a stream. The last one's may wait for a device. */
    void (*end)(struct Share *share, uint64_t stream);
    int32_t (*users)(const struct Share *share);
    void (*last_failure)(hamr_failure *failure, size_t size);
    /* What is called, on any thread, after C gave back the last of memory that share made. */
    void (*when_over)(void (*over)(void));
    /* A new buffer of host memory of somebody else's, which array describes but for memory and marks: the core
     * is told of it when it first has to do with it. Takes over key: finished is called once, on any thread, when
     * nobody uses the memory any more, and after an error, too. */
    hamr_status (*take_foreign)(const hamr_array *array, uint64_t key, hamr_finished_function finished,
                                hamr_buffer **made);
} hamr_exchange;

typedef const hamr_exchange *(*hamr_get_exchange_function)(uint32_t version);

#endif
