#include "share.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "fork.h"
#include "spare.h"

static void (*over)(void);
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t untold;

Share *share_over(const hamr_array *array) {
    Share *share = malloc(sizeof *share);
    if (!share) return NULL;
    memset(share, 0, sizeof *share);
    share->users = 1;
    memory_fill(&share->memory, array, capi_generation);
    share->flags = array->flags;
    return share;
}

Share *share_new(const hamr_array *array) {
    Share *share = share_over(array);
    if (!share) capi_functions()->release(array->memory);
    return share;
}

Share *share_of_foreign(const hamr_array *array, uint64_t key, hamr_finished_function finished) {
    Share *share = share_over(array);
    if (!share) return NULL;
    share->memory.token = 0;
    share->key = key;
    share->finished = finished;
    share->foreign = 1;
    share->pythons = 1;
    atomic_fetch_add(&untold, 1);
    return share;
}

static hamr_status tell_core(Share *share) {
    int64_t dimensions[2];
    hamr_array whole = memory_whole(&share->memory, dimensions);
    hamr_status status = keep(capi_functions()->adopt(&whole, share->key, share->finished));
    if (status) return status;
    share->memory.marks = whole.marks;
    atomic_fetch_sub(&untold, 1);
    __atomic_store_n(&share->memory.token, whole.memory, __ATOMIC_RELEASE);
    return HAMR_OK;
}

hamr_status share_tell_core(Share *share) {
    if (!share || !share->finished || share_token(share)) return HAMR_OK;
    CAPI_LOAD();
    pthread_mutex_lock(&telling);
    hamr_status status = share->memory.token ? HAMR_OK : tell_core(share);
    pthread_mutex_unlock(&telling);
    return status;
}

int64_t shares_untold(void) { return atomic_load(&untold); }

void shares_lock(void) { pthread_mutex_lock(&telling); }

void shares_unlock(void) { pthread_mutex_unlock(&telling); }

void shares_forget(void) { atomic_store(&untold, 0); }

void share_when_over(void (*tell)(void)) { __atomic_store_n(&over, tell, __ATOMIC_RELEASE); }

struct Kept {
    uint64_t key;
    hamr_finished_function finished;
    struct Kept *next;
};

int share_keep(Share *share, uint64_t key, hamr_finished_function finished) {
    struct Kept *kept = malloc(sizeof *kept);
    if (!kept) return 0;
    *kept = (struct Kept){.key = key, .finished = finished, .next = share->kept};
    share->kept = kept;
    return 1;
}

/* The core, where it knows memory of a device; NULL else. */
static const hamr_functions *known_by(const Share *share) {
    return is_of_device(share->memory.allocator) && share->memory.generation == capi_generation ? capi_functions()
        : NULL;
}

void share_leave(Share *share) {
    const hamr_functions *functions = known_by(share);
    if (!functions || share->foreign || !is_pooled(share->memory.allocator)) return;
    functions->release_after(share->memory.token, HAMR_EVERY_STREAM);
}

void share_end(Share *share, uint64_t stream) {
    if (!share) return;
    const hamr_functions *functions = known_by(share);
    /* The stream may have ended, and is not asked where nobody else has to be ordered after it. */
    int last = stream > 2 && atomic_load(&share->users) == 1;
    if (functions && stream != share->memory.stream)
        functions->release_after(share->memory.token, last ? HAMR_EVERY_STREAM : stream);
    if (atomic_fetch_sub(&share->users, 1) != 1) return;
    int is_here = share->memory.generation == capi_generation;
    if (share->finished && !share->memory.token) { /* also a parent's, of which a child has its own owner */
        if (is_here) atomic_fetch_sub(&untold, 1);
        share->finished(share->key);
    } else if (!is_here || !capi_functions()) { /* the parent's, and its copy of the core's */
        free(share);
        return;
    } else {
        if (spare_put(share)) return;
        if (!share->foreign && memory_waits_for_all(&share->memory))
            capi_functions()->release_after(share->memory.token, HAMR_EVERY_STREAM);
        capi_functions()->release(share->memory.token);
    }
    if (share->lease) capi_own.functions->store->end_object(share->lease);
    void (*tell)(void) = share->pythons || share->kept ? __atomic_load_n(&over, __ATOMIC_ACQUIRE) : NULL;
    while (share->kept) {
        struct Kept *kept = share->kept;
        share->kept = kept->next;
        kept->finished(kept->key);
        free(kept);
    }
    free(share);
    if (tell) tell();
}
