/* A program of another's that uses hamr's table of functions; the tests load it. */
#include "hamr/functions.h"

#include <stdio.h>
#include <string.h>

#define ROOM HAMR_MAX_DIMENSIONS

typedef struct {
    hamr_array array;
    int64_t shape[ROOM], strides[ROOM];
} array;

static void start(array *a, int32_t element) {
    memset(a, 0, sizeof *a);
    a->array.shape = a->shape;
    a->array.strides = a->strides;
    a->array.element = element;
    a->array.allocator = HAMR_ALLOCATOR_MALLOC;
    a->array.device = HAMR_HOST_DEVICE;
}

/* The result's memory is the array's own reference, or a new one. */
static void become(const hamr_functions *hamr, array *a, const array *result) {
    if (a->array.memory != result->array.memory) hamr->release(a->array.memory);
    *a = *result;
    a->array.shape = a->shape;
    a->array.strides = a->strides;
}

static int failed(const hamr_functions *hamr, hamr_error *error, char *report, size_t room) {
    if (!error) return 0;
    snprintf(report, room, "%d %s", (int)error->kind, error->message);
    hamr->free(error);
    return 1;
}

/* Makes, changes and prints an array. 0, or 1 with a report of what went wrong. */
int use(hamr_get_functions *get, char *report, size_t room) {
    const hamr_functions *hamr = get(HAMR_ABI_VERSION);
    double one = 1.5;
    array a, value, result;
    int32_t view = 0;
    int64_t shape[2] = {3, -1};
    char *text = NULL;
    if (!hamr || get(HAMR_ABI_VERSION + 1)) {
        snprintf(report, room, "the version is not looked at");
        return 1;
    }
    int64_t before = hamr->live_references();
    start(&a, HAMR_INT32);
    a.array.ndim = 1;
    a.shape[0] = 4;
    if (failed(hamr, hamr->create(&a.array, &one, HAMR_FLOAT64), report, room)) return 1;
    start(&value, HAMR_INT32);
    value.array.ndim = 0;
    if (failed(hamr, hamr->create(&value.array, &one, HAMR_FLOAT64), report, room)) return 1;
    *(int32_t *)(uintptr_t)value.array.pointer = 7;
    start(&result, HAMR_INT32);
    shape[0] = 6;
    if (failed(hamr, hamr->resize(&a.array, 1, shape, &value.array, &result.array), report, room)) return 1;
    become(hamr, &a, &result);
    shape[0] = 3;
    start(&result, HAMR_INT32);
    if (failed(hamr, hamr->reshape(&a.array, 2, shape, 1, &result.array, &view), report, room)) return 1;
    if (!view || result.array.ndim != 2 || result.shape[1] != 2) {
        snprintf(report, room, "reshape says %d %d", (int)view, (int)result.shape[1]);
        return 1;
    }
    become(hamr, &a, &result);
    if (failed(hamr, hamr->text(&a.array, 0, &text), report, room)) return 1;
    snprintf(report, room, "%s", text);
    hamr->free(text);
    hamr->release(a.array.memory);
    hamr->release(value.array.memory);
    return hamr->live_references() != before;
}

/* What is wrong comes with its kind and its facts. */
int ask_too_much(hamr_get_functions *get, char *report, size_t room) {
    const hamr_functions *hamr = get(HAMR_ABI_VERSION);
    array a;
    uint64_t stream = 0;
    start(&a, HAMR_FLOAT64);
    a.array.ndim = 1;
    a.shape[0] = -3;
    hamr_error *error = hamr->create(&a.array, NULL, 0);
    int32_t first = error ? error->kind : 0;
    hamr->free(error);
    error = hamr->new_stream("abacus", 0, &stream);
    int32_t second = error ? error->kind : 0;
    hamr->free(error);
    a.shape[0] = (int64_t)1 << 45;
    error = hamr->create(&a.array, NULL, 0);
    snprintf(report, room, "%d %d %d %lld", (int)first, (int)second, error ? (int)error->kind : 0,
             error ? (long long)error->size : 0);
    hamr->free(error);
    error = hamr->text(NULL, 0, NULL);
    int32_t defect = error ? error->kind : 0;
    hamr->free(error);
    return defect != HAMR_INTERNAL_ERROR;
}

/* Names of backends, one after the other, and whether each is there. */
int list_backends(hamr_get_functions *get, char *report, size_t room) {
    const hamr_functions *hamr = get(HAMR_ABI_VERSION);
    hamr_strings *names;
    size_t used = 0;
    if (failed(hamr, hamr->backends(&names), report, room)) return 1;
    for (int64_t i = 0; i < names->count; i++) {
        hamr_backend *backend;
        if (failed(hamr, hamr->backend(names->items[i], &backend), report, room)) return 1;
        used += (size_t)snprintf(report + used, room - used, "%s:%d:%s ", backend->name, (int)backend->available,
                                 backend->allocators[0]);
        hamr->free(backend);
    }
    hamr->free(names);
    return 0;
}

const void *table(hamr_get_functions *get) { return get(HAMR_ABI_VERSION); }
