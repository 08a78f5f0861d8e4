/* The types and the table of hamr/store.h: types never change, and the table grows at its end only. Status and words of
 * errors are as of hamr/interface.h, and so is what may be called from which thread. One session may be used by all
 * threads, one builder by one at a time. Milliseconds are how long a call waits for others, -1 for ever. */
#ifndef HAMR_STORE_INTERFACE_H
#define HAMR_STORE_INTERFACE_H

#include "hamr/interface.h"

#define HAMR_STORE_VERSION 1u

/* Further numbers of hamr_status. */
enum {
    HAMR_ERROR_NOT_FOUND = 32,  /* no object has the id or the name, or it was deleted */
    HAMR_ERROR_NOT_SEALED = 33,
    HAMR_ERROR_SEALED = 34,     /* it is what it is for good */
    HAMR_ERROR_NAME_TAKEN = 35,
    HAMR_ERROR_FULL = 36,       /* the failure's source is the memory's name, size the bytes that were needed */
    HAMR_ERROR_LOST = 37,       /* no server answers; what is mapped stays */
    HAMR_ERROR_REFUSED = 38,    /* by the other side, as another user's */
    HAMR_ERROR_TIMEOUT = 39,
    HAMR_ERROR_STORE = 40       /* what else fails at the server or on the way to it */
};

/* Flags of new objects, and of what describe tells. */
enum {
    HAMR_STORE_EVICTABLE = 1, /* may be deleted, sealed and while nobody has it, when room is needed */
    HAMR_STORE_PINNED = 2,    /* is neither evicted nor spilled */
    HAMR_STORE_SEPARATE = 4,  /* has memory of its own, however small */
    HAMR_STORE_SEALED = 8,    /* told alone */
    HAMR_STORE_SESSION = 16   /* is deleted when the session ends that makes it, however that ends; not told */
};

/* Which objects are listed. */
enum { HAMR_STORE_LIST_UNSEALED = 1, HAMR_STORE_LIST_NAMED = 2 };

/* How elements are shared; in what a frame tells, READ_ONLY and COPY say what happened. */
enum {
    HAMR_SHARE_READ_ONLY = 1,
    HAMR_SHARE_COPY = 2,      /* always copies */
    HAMR_SHARE_IN_PLACE = 4   /* never copies */
};

typedef struct hamr_store_id {
    uint8_t bytes[16];
} hamr_store_id;

/* What is known of an object without its memory. */
typedef struct hamr_store_info {
    hamr_store_id id;
    uint8_t device[16]; /* its UUID; zero is the host */
    int64_t bytes;
    int64_t leases;     /* of all processes */
    int32_t element;
    int32_t ndim;
    uint32_t flags;     /* HAMR_STORE_EVICTABLE … */
    uint32_t reserved;
    int64_t shape[64];
} hamr_store_info;

/* A server's figures; bytes are those of host memory. */
typedef struct hamr_store_figures {
    int64_t objects;
    int64_t unsealed;
    int64_t names;
    int64_t leases;
    int64_t sessions;
    int64_t evicted;
    int64_t spilled;
    int64_t requests;
    int64_t limit;
    int64_t used;
    int64_t peak;
    int64_t lingering; /* deleted and still somewhere in use: docs/store.md */
} hamr_store_figures;

/* An array of a group, which is an object of many arrays. */
typedef struct hamr_group_item {
    const char *path;     /* UTF-8, as "layers.0.weight"; a path from elsewhere ends at its first NUL */
    hamr_buffer *buffer;
    const char *metadata; /* JSON, or NULL */
} hamr_group_item;

typedef struct hamr_store hamr_store;                 /* a session with a server */
typedef struct hamr_store_builder hamr_store_builder; /* an object that is not sealed */
typedef struct hamr_store_server hamr_store_server;   /* in this process */
typedef struct hamr_store_group hamr_store_group;     /* a lease of a group */
typedef struct hamr_mirror hamr_mirror;               /* a device's elements on the host */
typedef struct hamr_shared hamr_shared;               /* what another process opens elements by */

typedef struct hamr_store_table {
    uint32_t version; /* HAMR_STORE_VERSION */
    uint32_t size;    /* bytes in the library's table */

    /* Sessions. The path is the socket's; NULL is where servers are by default. */
    hamr_status (*connect)(const char *path, int64_t milliseconds, hamr_store **made);
    const char *(*path)(const hamr_store *store); /* NULL: no session. Valid until it is closed */
    /* Ends the session, and with it its leases. What is mapped stays until it is released. */
    hamr_status (*close)(hamr_store *store);
    /* A server for this process and others; limits in bytes, 0 is half of what the process may have, and none
     * of devices'. spill is a directory of the user's own, or NULL. */
    hamr_status (*serve)(const char *path, int64_t host_limit, int64_t device_limit, const char *spill,
                         hamr_store_server **made);
    const char *(*server_path)(const hamr_store_server *server);
    hamr_status (*end_server)(hamr_store_server *server);

    /* Making objects. Of place, allocator and device count; NULL is the host. metadata is JSON of
     * so many bytes, or NULL. */
    hamr_status (*create)(hamr_store *store, int32_t element, int32_t ndim, const int64_t *shape,
                          const hamr_place *place, uint32_t flags, const void *metadata, size_t metadata_bytes,
                          hamr_store_builder **made);
    hamr_store_id (*builder_id)(const hamr_store_builder *builder); /* zero: no builder */
    /* The elements to write to. It is the builder's, and ends with it; views of it do not, but what is
     * written to them after the seal nobody else sees. It must not be resized or moved. NULL: no builder. */
    hamr_buffer *(*builder_buffer)(const hamr_store_builder *builder);
    /* Makes the object one that everybody finds and nobody writes to, after the work on it. Ends the
     * builder, and after an error the object, save where the buffer has other elements than the
     * object's. made, if not NULL, is a buffer of the sealed elements. */
    hamr_status (*seal)(hamr_store_builder *builder, hamr_buffer **made);
    hamr_status (*abort)(hamr_store_builder *builder); /* gives the object up. NULL is harmless */
    /* An object of a copy of the elements, on the same device if that can be shared, and sealed. */
    hamr_status (*put)(hamr_store *store, const hamr_buffer *buffer, uint32_t flags, const void *metadata,
                       size_t metadata_bytes, hamr_store_id *id);

    /* Finding objects. A buffer of the object's elements, in place, which has a lease until it and all
     * that was made of it are gone. Waits until there is a sealed one if milliseconds is not 0. unsafe
     * gets one that is not sealed, too. */
    hamr_status (*get)(hamr_store *store, const hamr_store_id *id, int32_t unsafe, int64_t milliseconds,
                       hamr_buffer **made);
    /* Nobody finds it any more; its memory goes with the last lease. force: see docs/store.md. */
    hamr_status (*delete_object)(hamr_store *store, const hamr_store_id *id, int32_t force);
    hamr_status (*put_name)(hamr_store *store, const char *name, const hamr_store_id *id, int32_t replace);
    hamr_status (*get_name)(hamr_store *store, const char *name, int64_t milliseconds, hamr_store_id *id);
    hamr_status (*drop_name)(hamr_store *store, const char *name);
    /* sealed may be NULL. */
    hamr_status (*exists)(hamr_store *store, const hamr_store_id *id, int32_t *there, int32_t *sealed);
    hamr_status (*describe)(hamr_store *store, const hamr_store_id *id, hamr_store_info *info);
    /* JSON as its maker gave it; it ends with a NUL that does not count, and goes to free_text. */
    hamr_status (*metadata)(hamr_store *store, const hamr_store_id *id, char **text, size_t *bytes);
    /* Ids of room objects at most, in the order in which they were made, and how many those are. after
     * is 0 at the beginning, and again at the end; a page may be empty before that. prefix is of names, or NULL. */
    hamr_status (*list)(hamr_store *store, uint32_t which, const char *prefix, uint64_t *after, hamr_store_id *ids,
                        int64_t room, int64_t *found);
    /* Those of n objects that are sealed, as soon as count of them are; fewer when the time is over.
     * ready has room for n. */
    hamr_status (*wait)(hamr_store *store, const hamr_store_id *ids, int64_t n, int64_t count, int64_t milliseconds,
                        hamr_store_id *ready, int64_t *found);
    hamr_status (*statistics)(hamr_store *store, hamr_store_figures *figures);

    /* All elements of a buffer in page-locked memory of the host where they are a device's, else in
     * place. Without initialize they are not copied there first; of a read-only buffer they are in any
     * case, and must not be written to. Until the mirror is released or abandoned they are its own. */
    hamr_status (*create_mirror)(hamr_buffer *buffer, int32_t initialize, hamr_mirror **made);
    const hamr_info *(*mirror_info)(const hamr_mirror *mirror); /* NULL: no mirror */
    void *(*mirror_data)(const hamr_mirror *mirror);            /* its elements; likewise */
    /* Ends it, after what is in it was written to the elements, unless the buffer is read-only. Where
     * memory runs out for that the mirror is still there, to be tried again or abandoned. NULL is harmless. */
    hamr_status (*release_mirror)(hamr_mirror *mirror);
    hamr_status (*abandon_mirror)(hamr_mirror *mirror); /* without writing anything back, where it is a copy */

    /* Sharing without a server. It waits for the work on the elements. */
    hamr_status (*share)(const hamr_buffer *buffer, uint32_t flags, hamr_shared **made);
    /* A frame of at most 4096 bytes, and the descriptors that go with it, for a transport that duplicates
     * those. They are the handle's. flags say what happened; each result may be NULL. */
    hamr_status (*shared_frame)(const hamr_shared *shared, const void **frame, size_t *bytes, const int **descriptors,
                                int32_t *count, uint32_t *flags);
    /* Lets go of it, once it was sent. NULL is harmless. */
    hamr_status (*release_shared)(hamr_shared *shared);
    hamr_status (*send_shared)(const hamr_shared *shared, int socket); /* a connected UNIX socket */
    /* The descriptors stay the caller's. */
    hamr_status (*open_frame)(const void *frame, size_t bytes, const int *descriptors, int32_t count,
                              hamr_buffer **made);
    /* HAMR_ERROR_NOT_FOUND: the other end was closed; HAMR_ERROR_TIMEOUT: the socket does not wait, and has nothing. */
    hamr_status (*open_shared)(int socket, hamr_buffer **made);

    /* Of an object that is there, sealed or not. Pinned it is neither evicted nor spilled; evictable it may be
     * deleted, sealed and while nobody has it, when room is needed. on is 1, or 0 for no longer. */
    hamr_status (*pin)(hamr_store *store, const hamr_store_id *id, int32_t on);
    hamr_status (*set_evictable)(hamr_store *store, const hamr_store_id *id, int32_t on);
    /* Replaces the JSON of an object that this session has made and not sealed. */
    hamr_status (*set_metadata)(hamr_store *store, const hamr_store_id *id, const void *metadata,
                                size_t metadata_bytes);
    /* Ends with HAMR_ERROR_TIMEOUT each call of the session that the server has not answered for so many
     * milliseconds, 1 or more; -1, as at first, is no limit. What the server does of such a call later is
     * undone. Calls that wait for others end by their own milliseconds alone. */
    hamr_status (*set_timeout)(hamr_store *store, int64_t milliseconds);

    /* put, get and delete_object of n objects in fewer round trips: all or, after an error, none. Where names is not
     * NULL each object gets the name at its place, unless that is NULL. ids has room for n, and so has made. An id may
     * be given twice. */
    hamr_status (*put_many)(hamr_store *store, const hamr_buffer *const *buffers, int64_t n, uint32_t flags,
                            const void *metadata, size_t metadata_bytes, const char *const *names, hamr_store_id *ids);
    hamr_status (*get_many)(hamr_store *store, const hamr_store_id *ids, int64_t n, hamr_buffer **made);
    hamr_status (*delete_many)(hamr_store *store, const hamr_store_id *ids, int64_t n, int32_t force);

    /* One object of copies of n arrays, a group, sealed, with a name unless that is NULL. The paths differ. It is on
     * the device that has any of the arrays, if that can be shared. Arrays of the same memory are stored once. */
    hamr_status (*put_group)(hamr_store *store, const hamr_group_item *items, int64_t n, uint32_t flags,
                             const void *metadata, size_t metadata_bytes, const char *name, hamr_store_id *id);
    /* A group that a program in any language has put, in place: arrays in dictionaries, lists and tuples have the keys
     * and positions that lead to them as their paths, with dots in between. only are n_only paths of what is wanted, or
     * their beginnings up to a dot; NULL is all. Waits as get does. */
    hamr_status (*get_group)(hamr_store *store, const hamr_store_id *id, const char *const *only, int64_t n_only,
                             int64_t milliseconds, hamr_store_group **made);
    /* The arrays, in order. They are the group's, and read-only; views of them keep the lease. NULL: no group. */
    const hamr_group_item *(*group_items)(const hamr_store_group *group, int64_t *n);
    /* The array of a path; where several have it, the first. NULL: there is none. */
    const hamr_group_item *(*group_find)(const hamr_store_group *group, const char *path);
    /* The group's metadata, or NULL, and an object of what was put among the arrays, by path: texts, true, false, null,
     * numbers, and ["float","inf"], "-inf" or "nan" for one that JSON does not have. Both are JSON, and the group's. */
    hamr_status (*group_texts)(const hamr_store_group *group, const char **metadata, const char **values);
    hamr_status (*release_group)(hamr_store_group *group); /* ends the lease, but for views. NULL is harmless */
    /* Gives a sealed object a name, and deletes the object that had it, unless that has other names or is not sealed:
     * one step, after which nobody finds the old one. With lasting, 1 or 0, an object of HAMR_STORE_SESSION stays when
     * the session ends. put_name leaves the old object there, without the name. */
    hamr_status (*replace)(hamr_store *store, const char *name, const hamr_store_id *id, int32_t lasting);
    /* The object that has a name, when it is another one than known, which may be NULL for none. 0 milliseconds ask
     * once, as get_name does. Whoever gives what was found as known next misses no newest one. */
    hamr_status (*wait_name)(hamr_store *store, const char *name, const hamr_store_id *known, int64_t milliseconds,
                             hamr_store_id *id);
} hamr_store_table;

#endif
