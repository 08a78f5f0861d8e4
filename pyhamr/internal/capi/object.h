/* What programs hold: buffers, handles of accesses, streams and events, told apart, and from what was
 * released. Their memory is never given to anybody else, so that a second release is noticed, for as
 * long as no new one has taken the place. */
#pragma once

#include "failure.h"
#include "fork.h"
#include "hamr/store_interface.h"
#include "share.h"

typedef enum { RELEASED, BUFFER, HANDLE, STREAM, EVENT, SESSION, BUILDER, SERVER, SHARED, MIRROR, GROUP } Kind;

typedef struct {
    int32_t kind;
    uint64_t generation;
} Head;

#define SHORT 4 /* dimensions that need no memory of their own */

/* An array, and its part in the memory. */
typedef struct {
    hamr_info info;
    hamr_array array;
    Share *share; /* NULL: no memory */
    int64_t dimensions[2 * SHORT];
} Held;

struct hamr_buffer {
    Head head;
    Held held;
    int32_t cached; /* keep_temporaries is on */
};

struct hamr_handle {
    Head head;
    Held held;
    uint64_t access; /* 0: a plain one */
    int32_t mode;
};

/* The same for streams and events. */
struct hamr_stream {
    Head head;
    char backend[16];
    int32_t device;
    int32_t made; /* by hamr, which ends it */
    uint64_t native;
};
struct hamr_event {
    struct hamr_stream same;
};

/* What the store and sharing have, by the numbers that Go knows them by. */
typedef struct {
    Head head;
    uint64_t token;
    hamr_buffer *buffer; /* a builder's */
    uint64_t memory;     /* the object's, which that must still have */
    hamr_store_id id;
    char *text;          /* a path, or a frame */
    size_t bytes;
    int descriptors[2];
    int32_t count;
    uint32_t flags;
} Numbered;
struct hamr_store {
    Numbered numbered;
};
struct hamr_store_builder {
    Numbered numbered;
};
struct hamr_store_server {
    Numbered numbered;
};
struct hamr_shared {
    Numbered numbered;
};
struct hamr_mirror {
    Head head;
    hamr_handle *handle;
    hamr_buffer *pinned; /* NULL: the handle's elements are the host's */
    int32_t mode;
};

struct hamr_store_group {
    Head head;
    hamr_buffer *whole; /* which has the lease */
    hamr_group_item *items;
    const struct hamr_store_part **sorted; /* by path */
    int64_t count;
    struct hamr_store_parts *parts; /* the texts */
};

typedef union Object {
    Head head;
    Numbered numbered;
    struct hamr_mirror mirror;
    struct hamr_store_group group;
    struct hamr_buffer buffer;
    struct hamr_handle handle;
    struct hamr_stream stream;
    struct hamr_event event;
    struct {
        Head head;
        union Object *next;
    } free;
} Object;

void object_lock(void); /* guards spares, too */
void object_unlock(void);
Object *object_take_locked(void); /* NULL: no memory */
Object *object_new(Kind kind); /* zero but for its head; NULL: no memory, which is told */
void object_free(void *object);
void objects_each(void (*visit)(Object *object, void *with), void *with); /* with the lock */

/* Whether it is there, of that kind, and of this process; else what is wrong. */
hamr_status object_check(const void *object, Kind kind, const char *name);

#define CHECK(object, kind, name)                                     \
    do {                                                              \
        hamr_status check_ = object_check(object, kind, name);        \
        if (check_) return check_;                                    \
    } while (0)

/* The same of what is released, and may be of a parent's; there is nothing to do for NULL. */
#define CHECK_RELEASED(object, head, wanted, name)                            \
    do {                                                                      \
        if (!(object)) return HAMR_OK;                                        \
        if ((head).kind != (wanted)) return object_check(object, wanted, name); \
    } while (0)

/* Where a result goes. */
#define CHECK_RESULT(made, name)                                                                          \
    do {                                                                                                  \
        forget_failure();                                                                                 \
        if (!(made)) return fail(HAMR_ERROR_VALUE, "%s is NULL: accepted is where the result goes", name); \
    } while (0)
