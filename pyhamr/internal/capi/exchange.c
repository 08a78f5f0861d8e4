/* Memory that Python has, too. */
#include "hamr/exchange.h"

#include "calls.h"

/* One array grows where the memory is: the one that has it already. */
static void leave_room(hamr_array *array) {
    array->capacity = array_count(array);
    array->flags &= ~(uint32_t)HAMR_GROWS;
}

static hamr_status lend(const hamr_buffer *buffer, hamr_array *array, Share **share, int32_t *foreign) {
    CHECK(buffer, BUFFER, "buffer");
    CAPI_LOAD();
    GIVE(&buffer->held, array); /* Python may do with it what it likes: it is no spare any more */
    *share = buffer->held.share;
    *foreign = *share && (*share)->foreign;
    leave_room(array);
    if (*share) atomic_fetch_add(&(*share)->users, 1);
    return HAMR_OK;
}

static hamr_status take(const hamr_array *array, Share *share, hamr_buffer **made) {
    CHECK_RESULT(made, "made");
    CAPI_LOAD();
    hamr_array own = *array;
    leave_room(&own);
    if (share) atomic_fetch_add(&share->users, 1);
    return buffer_with(&own, share, made);
}

static hamr_status share(const hamr_array *array, int32_t foreign, Share **made) {
    CAPI_LOAD();
    if (!(*made = share_over(array))) return fail(HAMR_ERROR_MEMORY, "no memory for a handle");
    (*made)->foreign = foreign != 0;
    (*made)->pythons = 1;
    return HAMR_OK;
}

static const hamr_table *table(void) { return hamr_get_table(HAMR_TABLE_VERSION); }

static const hamr_functions *functions(void) { return capi_functions() || !capi_load() ? capi_functions() : NULL; }

/* The core is told at once where somebody reads what it does. */
static hamr_status take_foreign(const hamr_array *array, uint64_t key, hamr_finished_function finished,
                                hamr_buffer **made) {
    hamr_status status = functions() ? HAMR_OK : HAMR_ERROR_INTERNAL;
    Share *share = status ? NULL : share_of_foreign(array, key, finished);
    if (!share) {
        finished(key);
        return status ? status : fail(HAMR_ERROR_MEMORY, "no memory for a handle");
    }
    status = capi_traced() ? share_tell_core(share) : HAMR_OK;
    if (!status) return buffer_with(array, share, made);
    share_end(share, array->stream);
    return status;
}

static hamr_status keep_for(Share *share, uint64_t key, hamr_finished_function finished) {
    return share_keep(share, key, finished) ? HAMR_OK : fail(HAMR_ERROR_MEMORY, "no memory for a handle");
}

static int32_t users(const Share *share) { return atomic_load(&share->users); }

static const hamr_exchange exchange = {
    .version = HAMR_ABI_VERSION,
    .table = table,
    .functions = functions,
    .lend = lend,
    .take = take,
    .share = share,
    .keep = keep_for,
    .end = share_end,
    .users = users,
    .last_failure = capi_last_failure,
    .when_over = share_when_over,
    .take_foreign = take_foreign,
};

/* NULL for an extension of another version. */
HAMR_EXPORT const hamr_exchange *hamr_get_exchange(uint32_t version);
HAMR_EXPORT const hamr_exchange *hamr_get_exchange(uint32_t version) {
    return version == HAMR_ABI_VERSION ? &exchange : NULL;
}
