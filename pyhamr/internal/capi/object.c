#include "object.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 64 /* objects that come into being together */

typedef struct Chunk {
    struct Chunk *next;
    Object objects[CHUNK];
} Chunk;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Object *free_objects; /* in the order of their release, so that who releases one twice is told for long */
static Object **last_free = &free_objects;
static Chunk *chunks;

void object_lock(void) { pthread_mutex_lock(&mutex); }

void object_unlock(void) { pthread_mutex_unlock(&mutex); }

Object *object_take_locked(void) {
    if (!free_objects) {
        Chunk *chunk = calloc(1, sizeof *chunk);
        if (!chunk) return NULL;
        chunk->next = chunks;
        chunks = chunk;
        for (int i = CHUNK - 1; i >= 0; i--) {
            chunk->objects[i].free.next = free_objects;
            free_objects = &chunk->objects[i];
        }
        last_free = &chunk->objects[CHUNK - 1].free.next;
    }
    Object *object = free_objects;
    free_objects = object->free.next;
    if (!free_objects) last_free = &free_objects;
    return object;
}

Object *object_new(Kind kind) {
    object_lock();
    Object *object = object_take_locked();
    object_unlock();
    if (!object) {
        fail(HAMR_ERROR_MEMORY, "no memory for a handle");
        return NULL;
    }
    memset(object, 0, sizeof *object);
    object->head = (Head){.kind = kind, .generation = capi_generation};
    return object;
}

void object_free(void *given) {
    Object *object = given;
    object_lock();
    object->head.kind = RELEASED;
    object->free.next = NULL;
    *last_free = object;
    last_free = &object->free.next;
    object_unlock();
}

void objects_each(void (*visit)(Object *object, void *with), void *with) {
    object_lock();
    for (Chunk *chunk = chunks; chunk; chunk = chunk->next)
        for (int i = 0; i < CHUNK; i++)
            if (chunk->objects[i].head.kind != RELEASED) visit(&chunk->objects[i], with);
    object_unlock();
}

hamr_status object_check(const void *object, Kind kind, const char *name) {
    static const char *const names[] = {"one that was released", "a buffer", "a handle of an access", "a stream",
                                        "an event", "a session", "a builder", "a server", "a shared handle",
                                        "a mirror", "a group"};
    const Head *head = object;
    if (!head) return fail(HAMR_ERROR_VALUE, "%s is NULL: accepted is %s", name, names[kind]);
    if (head->kind == RELEASED) return fail(HAMR_ERROR_RELEASED, "%s was released before (%p)", name, object);
    if (head->kind != (int32_t)kind)
        return fail(HAMR_ERROR_VALUE, "%s is %s: accepted is %s", name, head->kind > 0 &&
                    head->kind <= GROUP ? names[head->kind] : "nothing of hamr's", names[kind]);
    if (head->generation == capi_generation) {
        forget_failure();
        return HAMR_OK;
    }
    return fail(HAMR_ERROR_FORKED,
                "%s was made before fork(): a child makes its own, and has the addresses of host memory from the "
                "parent", name);
}
