/* Memory that buffers, handles and tensors use together: one reference in the core. */
#pragma once

#include <stdatomic.h>

#include "hamr/functions.h"
#include "hamr/interface.h"
#include "plain/memory.h"

typedef struct Share {
    Memory memory;
    atomic_int users;
    uint64_t lease;     /* Go's number of what the store has given, which ends with the memory; or 0 */
    uint32_t flags;     /* of a new array there */
    char temporary;     /* a copy for one handle, which says on which stream it is */
    char foreign;       /* somebody else's, whose release waits for nobody else's work */
    char pristine;      /* the core was told nothing but to make it */
    char pythons;       /* Python had it first, and is told when it is over */
    uint64_t key;       /* for finished */
    hamr_finished_function finished; /* of memory that the core is told of late; NULL else */
    struct Kept *kept;  /* what lasts as long as the memory is used */
    struct Share *next; /* among the spares */
} Share;

Share *share_over(const hamr_array *array); /* takes over the token; NULL: no memory, and it is the caller's still */
/* Host memory of somebody else's, who is told when it is over: the core is not told of it until it has to do with
 * it. NULL: no memory, and finished is the caller's to call. */
Share *share_of_foreign(const hamr_array *array, uint64_t key, hamr_finished_function finished);
hamr_status share_tell_core(Share *share); /* of it, if it has not been told */
int64_t shares_untold(void);              /* how many there are */
void shares_lock(void);                   /* over a fork, so that none is being told of */
void shares_unlock(void);
void shares_forget(void);                 /* in a forked child */
void share_when_over(void (*tell)(void)); /* of memory that Python had first */
Share *share_new(const hamr_array *array); /* takes over the token, also where there is no memory: NULL */
int share_keep(Share *share, uint64_t key, hamr_finished_function finished); /* 0: no memory */
void share_end(Share *share, uint64_t stream); /* of one user, who was on a stream */
void share_leave(Share *share); /* a consumer is done, whose stream may have ended */

/* 0: the core was not told of the memory yet. Whoever sees the token sees the marks. */
static inline uint64_t share_token(const Share *share) {
    return __atomic_load_n(&share->memory.token, __ATOMIC_ACQUIRE);
}
