/* What C asks Go for of the store and of sharing; a forked child asks its own copy. Texts are read
 * before a call returns; NULL is "". */
#ifndef HAMR_CAPI_STORE_CALLS_H
#define HAMR_CAPI_STORE_CALLS_H

#include "hamr/functions.h"
#include "hamr/store_interface.h"

typedef struct capi_store_calls {
    hamr_error *(*serve)(char *path, char *spill, int64_t host, int64_t device, uint64_t *token, char **found); /* found is malloc's */
    hamr_error *(*end_server)(uint64_t token);
    hamr_error *(*connect)(char *path, int64_t milliseconds, uint64_t *token, char **found);
    hamr_error *(*disconnect)(uint64_t token);
    /* The array has the element, shape and place, and is what the result describes; token is the builder's. */
    hamr_error *(*create)(uint64_t session, hamr_array *array, uint32_t flags, void *metadata, size_t bytes, hamr_store_id *id, uint64_t *token);
    hamr_error *(*seal)(uint64_t token, hamr_array *result); /* result may be NULL */
    hamr_error *(*abort)(uint64_t token);
    void (*end_object)(uint64_t token);
    hamr_error *(*get)(uint64_t session, hamr_store_id *id, int32_t unsafe, int64_t milliseconds, hamr_array *result, uint64_t *token);
    hamr_error *(*put)(uint64_t session, hamr_array *array, uint32_t flags, void *metadata, size_t bytes, hamr_store_id *id);
    hamr_error *(*delete_object)(uint64_t session, hamr_store_id *id, int32_t force);
    hamr_error *(*put_name)(uint64_t session, char *name, hamr_store_id *id, int32_t replace);
    hamr_error *(*get_name)(uint64_t session, char *name, int64_t milliseconds, hamr_store_id *id);
    hamr_error *(*drop_name)(uint64_t session, char *name);
    hamr_error *(*exists)(uint64_t session, hamr_store_id *id, int32_t *there, int32_t *sealed);
    hamr_error *(*describe)(uint64_t session, hamr_store_id *id, hamr_store_info *info);
    hamr_error *(*metadata)(uint64_t session, hamr_store_id *id, char **text, size_t *bytes); /* text is malloc's */
    hamr_error *(*list)(uint64_t session, uint32_t which, char *prefix, uint64_t *after, hamr_store_id *ids, int64_t room, int64_t *found);
    hamr_error *(*wait)(uint64_t session, hamr_store_id *ids, int64_t n, int64_t count, int64_t milliseconds, hamr_store_id *ready, int64_t *found);
    hamr_error *(*figures)(uint64_t session, hamr_store_figures *figures);
    /* frame has room for 4096 bytes, descriptors for two, which are the caller's to close. lease: of the elements, or 0. */
    hamr_error *(*share)(hamr_array *array, uint64_t lease, uint32_t *flags, void *frame, size_t *bytes, int *descriptors, int32_t *count);
    hamr_error *(*open_frame)(void *frame, size_t bytes, int *descriptors, int32_t count, hamr_array *result);
    hamr_error *(*pin)(uint64_t session, hamr_store_id *id, int32_t on);
    hamr_error *(*set_evictable)(uint64_t session, hamr_store_id *id, int32_t on);
    hamr_error *(*set_metadata)(uint64_t session, hamr_store_id *id, void *metadata, size_t bytes);
    hamr_error *(*set_timeout)(uint64_t session, int64_t milliseconds);
} capi_store_calls;

extern const capi_store_calls capi_store_of_this_copy;

#endif
