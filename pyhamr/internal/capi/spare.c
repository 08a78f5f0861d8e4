#include "spare.h"

#include <stdlib.h>
#include <string.h>

#define STEP 64
#define LARGEST 4096
#define EACH 8 /* of a size */

/* With the lock of the objects, so that a buffer takes it once. */
static struct {
    Share *first;
    int count;
} spares[LARGEST / STEP];
static int64_t reused;
static hamr_drop_function drop;

Object *spare_take(uint64_t size, Share **share) {
    if (size == 0 || size > LARGEST || capi_traced() || capi_watched()) return NULL;
    Object *object = NULL;
    object_lock();
    Share **at = &spares[(size - 1) / STEP].first;
    while (*at && (*at)->memory.size != size) at = &(*at)->next;
    if (*at && (object = object_take_locked())) {
        *share = *at;
        *at = (*at)->next;
        spares[(size - 1) / STEP].count--;
        reused++;
    }
    object_unlock();
    return object;
}

int spare_put(Share *share) {
    if (!share->pristine || share->memory.allocator != HAMR_ALLOCATOR_MALLOC || share->memory.stream ||
        share->memory.size == 0 || share->memory.size > LARGEST)
        return 0;
    if (capi_traced() || capi_checked() || capi_watched()) return 0;
    int kept = 0;
    object_lock();
    size_t of = (share->memory.size - 1) / STEP;
    if (spares[of].count < EACH) {
        share->next = spares[of].first;
        spares[of].first = share;
        spares[of].count++;
        kept = 1;
    }
    object_unlock();
    return kept;
}

int64_t spares_drop(int64_t *untold) {
    const hamr_functions *functions = capi_functions();
    Share *all = NULL;
    if (untold) *untold = shares_untold();
    object_lock();
    for (size_t i = 0; i < sizeof spares / sizeof *spares; i++) {
        while (spares[i].first) {
            Share *share = spares[i].first;
            spares[i].first = share->next;
            share->next = all;
            all = share;
        }
        spares[i].count = 0;
    }
    int64_t made = reused;
    object_unlock();
    while (all) {
        Share *share = all;
        all = share->next;
        functions->release(share->memory.token);
        free(share);
    }
    return made;
}

void spares_of(hamr_drop_function whose) { __atomic_store_n(&drop, whose, __ATOMIC_RELEASE); }

/* For the core of this copy: package bridge calls it before it counts. */
int64_t capi_drop_spares(int64_t *untold);
int64_t capi_drop_spares(int64_t *untold) {
    hamr_drop_function whose = __atomic_load_n(&drop, __ATOMIC_ACQUIRE);
    *untold = 0;
    return whose ? whose(untold) : 0;
}

void spares_forget(void) {
    memset(spares, 0, sizeof spares);
    reused = 0;
    drop = NULL;
}
