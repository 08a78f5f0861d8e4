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

typedef struct {
    const char *backend;
    hamr_memory_kind kind;
    int ordered;
} Facts;

static const Facts facts[] = {
#define ROW(allocator, number, name, backend, kind, reach, shared, ordered, ...) {backend, kind, ordered},
    HAMR_ALLOCATOR_FACTS(ROW)
};

static const Facts *facts_of(int32_t allocator) { return allocator >= 0 && allocator < HAMR_ALLOCATOR_COUNT ? &facts[allocator] : NULL; }

int is_of_device(int32_t allocator) {
    const Facts *of = facts_of(allocator);
    return of && strcmp(of->backend, "host") != 0;
}

const char *backend_of(int32_t allocator) {
    const Facts *of = facts_of(allocator);
    return of ? of->backend : NULL;
}

int is_ordered(int32_t allocator) {
    const Facts *of = facts_of(allocator);
    return of && of->ordered;
}

int is_reused(int32_t allocator) {
    const Facts *of = facts_of(allocator);
    return of && ((of->kind == HAMR_DEVICE_ONLY && !of->ordered) || of->kind == HAMR_PINNED);
}

static int is_pooled(int32_t allocator) { return is_ordered(allocator) || is_reused(allocator); }

Share *share_over(const hamr_array *array) {
    Share *share = malloc(sizeof *share);
    if (!share) return NULL;
    memset(share, 0, sizeof *share);
    share->users = 1;
    share->allocator = array->allocator;
    share->pooled = (char)is_pooled(array->allocator);
    share->token = array->memory;
    share->generation = capi_generation;
    share->stream = array->stream;
    share->base = array->base;
    share->size = array->size;
    share->marks = array->marks;
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
    share->token = 0;
    share->key = key;
    share->finished = finished;
    share->foreign = 1;
    share->pythons = 1;
    atomic_fetch_add(&untold, 1);
    return share;
}

static hamr_status tell_core(Share *share) {
    int64_t bytes = (int64_t)share->size, stride = 1;
    hamr_array whole = {.base = share->base, .size = share->size, .pointer = share->base, .stream = share->stream, .allocator = share->allocator,
                        .device = HAMR_HOST_DEVICE, .element = HAMR_UINT8, .ndim = 1, .shape = &bytes, .strides = &stride};
    hamr_status status = keep(capi_functions()->adopt(&whole, share->key, share->finished));
    if (status) return status;
    share->marks = whole.marks;
    atomic_fetch_sub(&untold, 1);
    atomic_store(&share->token, whole.memory); /* whoever sees it sees the marks */
    return HAMR_OK;
}

hamr_status share_tell_core(Share *share) {
    if (!share || !share->finished || atomic_load(&share->token)) return HAMR_OK;
    CAPI_LOAD();
    pthread_mutex_lock(&telling);
    hamr_status status = share->token ? HAMR_OK : tell_core(share);
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
    return is_of_device(share->allocator) && share->generation == capi_generation ? capi_functions() : NULL;
}

void share_leave(Share *share) {
    const hamr_functions *functions = known_by(share);
    if (!functions || share->foreign || !share->pooled) return;
    functions->release_after(share->token, HAMR_EVERY_STREAM);
}

/* Memory of the core's that may be handed out again must not be before the device is at rest: whoever has its
 * address may use it on any stream. */
static int waits_for_all(const Share *share) { return share->address_known && !share->foreign && share->pooled; }

void share_end(Share *share, uint64_t stream) {
    if (!share) return;
    const hamr_functions *functions = known_by(share);
    /* The stream may have ended, and is not asked where nobody else has to be ordered after it. */
    int last = stream > 2 && atomic_load(&share->users) == 1;
    if (functions && stream != share->stream) functions->release_after(share->token, last ? HAMR_EVERY_STREAM : stream);
    if (atomic_fetch_sub(&share->users, 1) != 1) return;
    int is_here = share->generation == capi_generation;
    if (share->finished && !share->token) { /* also a parent's, of which a child has its own owner */
        if (is_here) atomic_fetch_sub(&untold, 1);
        share->finished(share->key);
    } else if (!is_here || !capi_functions()) { /* the parent's, and its copy of the core's */
        free(share);
        return;
    } else {
        if (spare_put(share)) return;
        if (waits_for_all(share)) capi_functions()->release_after(share->token, HAMR_EVERY_STREAM);
        capi_functions()->release(share->token);
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
