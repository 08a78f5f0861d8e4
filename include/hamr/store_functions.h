/* What the package's own libraries ask Go's core for of the store: a part of hamr/functions.h, whose rules hold
 * here, too. What a call sets it sets only where it succeeds, save that one which is stopped may have succeeded
 * before: then what it has made is the caller's to end. */
#ifndef HAMR_STORE_FUNCTIONS_H
#define HAMR_STORE_FUNCTIONS_H

#include "hamr/functions.h"
#include "hamr/store_interface.h"

/* `how` of a call is HAMR_PROMPT, on which everything that the call was given must stay where it is until its outcome
 * is told, and these. */
#define HAMR_LENT 0x800000u     /* elements are described without a reference of their own: the token keeps them */
#define HAMR_PRIVATE 0x1000000u /* of get_object, with HAMR_LENT: those on the host with memory of their own may be
                                 * written to, and nobody else sees it; others are read-only */

/* A flag of create_object: all of it is about to be written, so that memory on the host is to be there at once. */
#define HAMR_STORE_WHOLE 0x10000u

/* Further kinds of hamr_error, behind those of hamr_status from HAMR_ERROR_NOT_FOUND on. Of these, the attributes are
 * HAMR_ERROR_NAME_TAKEN: name, the digits of the object that has it. HAMR_ERROR_FULL: source, the memory; size, limit,
 * used and holders. HAMR_ERROR_LOST: name, the path. HAMR_STORE_DESCRIPTORS: code, the errno. */
enum {
    HAMR_STORE_CLOSED = 41, /* what is asked was closed, sealed or aborted */
    HAMR_STORE_DESCRIPTORS, /* this process can open no more files */
    HAMR_STORE_KINDS_END
};

/* A process, and the bytes that the store keeps for it. */
typedef struct hamr_holder {
    int64_t process, bytes;
} hamr_holder;

typedef struct hamr_store_options {
    const char *path, *spill; /* NULL is the default path, and no folder */
    int64_t host, device;     /* limits in bytes; 0: see hamr/store_interface.h */
    int64_t ready, metadata;  /* bytes; 0 is none, and the default */
    int64_t socket;           /* a descriptor that listens, or 0 */
    int32_t spill_devices;
} hamr_store_options;

/* UTF-8, in which there may be NUL. Without bytes text may be NULL. */
typedef struct hamr_store_text {
    const char *text;
    int64_t bytes;
} hamr_store_text;

/* An object. */
typedef struct hamr_store_object {
    hamr_store_info info;
    const char *device;  /* "host", or its UUID */
    const char *problem; /* why metadata cannot be read, or NULL */
    hamr_store_text metadata;
    int64_t count;
    const hamr_store_text *names; /* count of them */
} hamr_store_object;

typedef struct hamr_store_page {
    uint64_t after; /* where the next page begins; 0: there is none */
    int64_t count;
    const hamr_store_object *objects;
} hamr_store_page;

typedef struct hamr_store_memory {
    const char *name; /* "host", or a device's UUID */
    int64_t limit, used, peak, lingering, ready;
} hamr_store_memory;

/* All figures of a server; memories are in the order of their names. */
typedef struct hamr_store_report {
    int64_t objects, unsealed, names, leases, connections, table, table_limit, evicted, spilled, spills, restored;
    int64_t requests, refused, breaches, ready_hits, ready_misses;
    int64_t count;
    const hamr_store_memory *memories;
} hamr_store_report;

/* An array of a group: where its elements lie in C order. */
typedef struct hamr_store_part {
    hamr_store_text path, metadata; /* without metadata, no bytes */
    int64_t offset;                 /* bytes */
    int32_t element, ndim;
    const int64_t *shape;
} hamr_store_part;

typedef struct hamr_store_parts {
    int64_t count;
    const hamr_store_part *parts;
    const char *metadata, *values; /* of the group; no metadata: NULL */
} hamr_store_parts;

typedef struct hamr_store_event {
    hamr_store_id id;
    const char *kind;
    hamr_store_text name;
    int64_t missed;
} hamr_store_event;

typedef struct hamr_store_events {
    int64_t count;
    const hamr_store_event *events;
} hamr_store_events;

/* Paths that are found, pages, parts, reports and events go to free. Texts are read before a call returns, whatever
 * `how` is; NULL is "". Milliseconds: -1 is for ever. */
typedef struct hamr_store_functions {
    hamr_error *(*serve)(const hamr_store_options *options, uint64_t *server, char **found);
    hamr_error *(*served)(uint64_t server, hamr_store_report **report);
    hamr_error *(*end_server)(uint64_t server);
    hamr_error *(*connect)(uint32_t how, const char *path, int64_t milliseconds, uint64_t *session, char **found);
    hamr_error *(*disconnect)(uint64_t session);
    hamr_error *(*limit_answers)(uint64_t session, int64_t milliseconds);
    /* The array has the element, shape and place, and is what the result describes; token is the builder's. */
    hamr_error *(*create_object)(uint32_t how, uint64_t session, hamr_array *array, uint32_t flags,
                                 const void *metadata, size_t bytes, hamr_store_id *id, uint64_t *token);
    /* alone: nobody has the elements but who calls. From then on the token is of the object's lease. result may be
     * NULL; sealed is 1 where the object is. */
    hamr_error *(*seal_object)(uint32_t how, uint64_t token, int32_t alone, hamr_array *result, int32_t *sealed);
    hamr_error *(*abort_object)(uint32_t how, uint64_t token);
    void (*end_object)(uint64_t token); /* a lease, or a builder */
    /* Elements of an object that is not sealed may be for reading only, too. */
    hamr_error *(*get_object)(uint32_t how, uint64_t session, const hamr_store_id *id, int32_t unsafe,
                              int64_t milliseconds, hamr_array *result, uint64_t *token, int32_t *sealed);
    /* HAMR_ALLOCATOR_ANY: where the elements are, if that can be shared. */
    hamr_error *(*put_object)(uint32_t how, uint64_t session, hamr_array *array, int32_t allocator, int32_t device,
                       uint32_t flags, const void *metadata, size_t bytes, hamr_store_id *id);
    /* Of many objects at once, all or, after an error, none: those of ids or, where a name has text, of names, which
     * are set in ids then. Each result has a token. */
    hamr_error *(*get_objects)(uint32_t how, uint64_t session, int64_t n, const hamr_store_text *names,
                               hamr_store_id *ids, hamr_array *const *results, uint64_t *tokens);
    /* Likewise; names may be NULL. The first of ids is zero unless objects were made. */
    hamr_error *(*put_objects)(uint32_t how, uint64_t session, int64_t n, hamr_array *const *arrays, int32_t allocator,
                               int32_t device, uint32_t flags, const void *metadata, size_t bytes,
                               const hamr_store_text *names, hamr_store_id *ids);
    hamr_error *(*delete_objects)(uint32_t how, uint64_t session, const hamr_store_id *ids, int64_t n, int32_t force);
    /* Paths are NULL for all; result is all of the group's bytes. */
    hamr_error *(*get_group)(uint32_t how, uint64_t session, const hamr_store_id *id, const hamr_store_text *only,
                             int64_t n, int64_t milliseconds, hamr_array *result, uint64_t *token,
                             hamr_store_parts **parts);
    hamr_error *(*put_group)(uint32_t how, uint64_t session, int64_t n, hamr_array *const *arrays,
                             const hamr_store_text *paths, const hamr_store_text *array_metadata, uint32_t flags,
                             const void *metadata, size_t bytes, hamr_store_text name, hamr_store_id *id);
    /* Has an object deleted that nobody is to know of. It waits for nobody. */
    void (*discard_object)(uint64_t session, const hamr_store_id *id);
    hamr_error *(*delete_object)(uint32_t how, uint64_t session, const hamr_store_id *id, int32_t force);
    hamr_error *(*put_name)(uint32_t how, uint64_t session, hamr_store_text name, const hamr_store_id *id,
                            int32_t replace);
    hamr_error *(*get_name)(uint32_t how, uint64_t session, hamr_store_text name, int64_t milliseconds,
                            hamr_store_id *id);
    hamr_error *(*drop_name)(uint32_t how, uint64_t session, hamr_store_text name);
    hamr_error *(*object_exists)(uint32_t how, uint64_t session, const hamr_store_id *id, int32_t *there,
                                 int32_t *sealed);
    hamr_error *(*describe_object)(uint32_t how, uint64_t session, const hamr_store_id *id, hamr_store_page **page);
    /* room 0: as many as an answer has. */
    hamr_error *(*list_objects)(uint32_t how, uint64_t session, uint32_t which, hamr_store_text prefix, uint64_t after,
                        int64_t room, hamr_store_page **page);
    hamr_error *(*wait_for_objects)(uint32_t how, uint64_t session, const hamr_store_id *ids, int64_t n, int64_t count,
                        int64_t milliseconds, hamr_store_id *ready, int64_t *found);
    hamr_error *(*store_statistics)(uint32_t how, uint64_t session, hamr_store_report **report);
    /* Sets or clears one of HAMR_STORE_EVICTABLE and HAMR_STORE_PINNED. */
    hamr_error *(*mark_object)(uint32_t how, uint64_t session, const hamr_store_id *id, uint32_t flag, int32_t on);
    hamr_error *(*set_metadata)(uint32_t how, uint64_t session, const hamr_store_id *id, hamr_store_text metadata);
    hamr_error *(*watch_objects)(uint32_t how, uint64_t session, uint64_t *token);
    /* *events stays NULL where there is none within so many milliseconds. */
    hamr_error *(*next_events)(uint32_t how, uint64_t token, int64_t milliseconds, hamr_store_events **events);
    void (*end_events)(uint64_t token); /* or a watch of a name */
    /* Gives a name in place of the object that had it, which is deleted. lasting: the object, of a session, stays. */
    hamr_error *(*replace)(uint32_t how, uint64_t session, hamr_store_text name, const hamr_store_id *id,
                           int32_t lasting);
    /* The object that has a name, when it is another one than known. */
    hamr_error *(*wait_name)(uint32_t how, uint64_t session, hamr_store_text name, const hamr_store_id *known,
                             int64_t milliseconds, hamr_store_id *id);
    hamr_error *(*watch_name)(uint32_t how, uint64_t session, hamr_store_text name, uint64_t *token);
    /* HAMR_ERROR_TIMEOUT where there is none within so many milliseconds. */
    hamr_error *(*next_name)(uint32_t how, uint64_t token, const hamr_store_id *known, int64_t milliseconds,
                             hamr_store_id *id);
    /* A descriptor to close, which can be read from when next_name does not wait. */
    hamr_error *(*name_descriptor)(uint64_t token, const hamr_store_id *known, int32_t *descriptor);
} hamr_store_functions;

#endif
