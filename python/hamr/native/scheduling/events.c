#include "scheduling/events.h"

#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "scheduling/placed.h"

/* The core keeps events for reuse. Of CUDA some are kept here, since a call of the core takes longer than
 * all that the driver does: those of devices' own contexts, which were recorded on streams of hamr's. */
enum { MOST_DEVICES = 16, MOST_EVENTS = 1024, NOT_READY = 600, DISABLE_TIMING = 2 };

static struct ring {
    uint64_t generation;
    uint64_t events[MOST_EVENTS]; /* the one first that was given back the longest ago; their work may still run */
    unsigned first, count;
    int32_t made; /* events of which the core has not heard */
} rings[MOST_DEVICES];

/* The driver, if it can be asked here: for a stream of hamr's where its context is current. */
static const hamr_devices *driver_for(const StreamPlace *place, const hamr_functions *functions) {
    void *current;
    if (!place->own || place->device >= MOST_DEVICES) return NULL;
    const hamr_devices *devices = place_driver(place, functions);
    return devices && devices->cuda_context(&current) == 0 && current == devices->cuda_contexts[place->device] ? devices : NULL;
}

static struct ring *ring_of(const StreamPlace *place) {
    struct ring *ring = &rings[place->device];
    if (ring->generation != core_generation) { /* those of a parent process */
        ring->generation = core_generation;
        ring->count = 0;
        ring->made = 0;
    }
    return ring;
}

static uint64_t *at(struct ring *ring, unsigned i) { return &ring->events[(ring->first + i) % MOST_EVENTS]; }

static void push(struct ring *ring, uint64_t event) { *at(ring, ring->count++) = event; }

static uint64_t pop_newest(struct ring *ring) { return *at(ring, --ring->count); }

static uint64_t pop_oldest(struct ring *ring) {
    uint64_t event = *at(ring, 0);
    ring->first = (ring->first + 1) % MOST_EVENTS;
    ring->count--;
    return event;
}

static void *handle_of(uint64_t event) { return (void *)(uintptr_t)event; }

/* One that is kept and done, or a new one; 0: the core finds out what is wrong. The newest may be in the
 * processor's caches yet, which makes it several times as quick as the oldest, which is done most often. */
static uint64_t take(const StreamPlace *place, const hamr_devices *devices) {
    struct ring *ring = ring_of(place);
    void *created = NULL;
    for (int oldest = 0; oldest < 2 && ring->count; oldest++) {
        uint64_t event = oldest ? *at(ring, 0) : *at(ring, ring->count - 1);
        int code = devices->cuda_done(handle_of(event));
        if (code == NOT_READY) continue;
        if (oldest) pop_oldest(ring);
        else pop_newest(ring);
        if (code == 0) return event;
        event_give(place, event, 1);
        return 0;
    }
    if (ring->count == MOST_EVENTS || devices->cuda_event(&created, DISABLE_TIMING) != 0) return 0;
    ring->made++;
    return (uint64_t)(uintptr_t)created;
}

int event_record(const StreamPlace *place, uint64_t *event) {
    const hamr_functions *functions;
    if (place_usable(place, &functions) < 0) return -1;
    const hamr_devices *devices = driver_for(place, functions);
    *event = devices ? take(place, devices) : 0;
    if (*event) {
        if (devices->cuda_record(handle_of(*event), place->handle) == 0) return 0;
        event_give(place, *event, 0); /* the core finds out what is wrong */
    }
    hamr_error *error = functions->record_cached_event(place->backend, place->device, place->handle, event);
    return error ? core_raise(error) : 0;
}

int event_wait(const StreamPlace *place, const StreamPlace *of, uint64_t event) {
    const hamr_functions *functions;
    int32_t waits;
    if (place_usable(of, &functions) < 0) return -1;
    const hamr_devices *devices = place->own ? driver_for(of, functions) : NULL;
    if (devices) {
        int code = devices->cuda_done(handle_of(event));
        if (code == 0 || (code == NOT_READY && devices->cuda_wait(place->handle, handle_of(event), 0) == 0)) return 0;
    }
    hamr_error *error = functions->wait_for_event(place->backend, place->device, place->handle, of->device, event, &waits);
    return error ? core_raise(error) : 0;
}

int event_done(const StreamPlace *of, uint64_t event) {
    const hamr_functions *functions;
    int32_t done;
    if (place_usable(of, &functions) < 0) return -1;
    hamr_error *error = functions->event_done(of->backend, of->device, event, &done);
    return error ? core_raise(error) : done;
}

/* An error of a destructor, which has nobody to raise to. */
static void report(hamr_error *error) {
    PyObject *type, *value, *traceback;
    if (!error) return;
    PyErr_Fetch(&type, &value, &traceback);
    core_raise(error);
    PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, traceback);
}

/* Gives an event to the core, which then has heard of all. */
static void give_core(const hamr_functions *functions, const char *backend, int32_t device, struct ring *ring, uint64_t event, int failed) {
    int32_t made = ring ? ring->made : 0;
    if (ring) ring->made = 0;
    report((failed ? functions->drop_cached_event : functions->give_cached_event)(backend, device, event, made));
}

void event_give(const StreamPlace *of, uint64_t event, int failed) {
    const hamr_functions *functions = of->generation == core_generation ? core_functions() : NULL;
    if (!functions) return;
    int direct = of->own && of->device < MOST_DEVICES && place_driver(of, functions);
    struct ring *ring = direct ? ring_of(of) : NULL;
    if (ring && !failed && ring->count < MOST_EVENTS) push(ring, event);
    else give_core(functions, of->backend, of->device, ring, event, failed);
}

/* give_events(): the core has all that are kept here. */
static PyObject *give_events(PyObject *module, PyObject *unused) {
    const hamr_functions *functions = core_functions();
    (void)module;
    (void)unused;
    for (int device = 0; device < MOST_DEVICES; device++) {
        struct ring *ring = &rings[device];
        if (!functions || ring->generation != core_generation) continue;
        while (ring->count || ring->made) give_core(functions, "cuda", device, ring, ring->count ? pop_oldest(ring) : 0, 0);
    }
    Py_RETURN_NONE;
}

PyMethodDef event_functions[] = {
    {"give_events", give_events, METH_NOARGS, "give_events(): give the core the events that are kept for reuse beside its own."},
    {NULL, NULL, 0, NULL},
};
