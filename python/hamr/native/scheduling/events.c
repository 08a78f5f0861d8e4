#include "scheduling/events.h"

#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "scheduling/placed.h"

/* The core keeps events for reuse, which it hands out once they are done. CUDA's need not be: what waits for an event
 * waits for what had been recorded when it was told to. To ask whether one is done takes the driver seven times as long
 * as to record it, and a call of the core longer than either. So those of devices' own contexts that were recorded on
 * streams of hamr's are kept here, the newest to be taken first: it may be in the processor's caches. */
enum { MOST_DEVICES = 16, MOST_EVENTS = 1024, NOT_READY = 600, DISABLE_TIMING = 2 };

static struct spare {
    uint64_t generation;
    uint64_t events[MOST_EVENTS]; /* their work may still run */
    unsigned count;
    int32_t made; /* events of which the core has not heard */
} spares[MOST_DEVICES];

/* The driver, if it can be asked here: for a stream of hamr's where its context is current. */
static const hamr_devices *driver_for(const StreamPlace *place, const hamr_functions *functions) {
    void *current;
    if (!place->own || place->device >= MOST_DEVICES) return NULL;
    const hamr_devices *devices = place_driver(place, functions);
    return devices && devices->cuda_context(&current) == 0 && current == devices->cuda_contexts[place->device] ? devices
        : NULL;
}

static struct spare *spare_of(const StreamPlace *place) {
    struct spare *spare = &spares[place->device];
    if (spare->generation != core_generation) { /* those of a parent process */
        spare->generation = core_generation;
        spare->count = 0;
        spare->made = 0;
    }
    return spare;
}

static void *handle_of(uint64_t event) { return (void *)(uintptr_t)event; }

/* An event that nobody has; 0: the core finds out what is wrong. */
static uint64_t take(const StreamPlace *place, const hamr_devices *devices) {
    struct spare *spare = spare_of(place);
    void *created = NULL;
    if (spare->count) return spare->events[--spare->count];
    if (devices->cuda_event(&created, DISABLE_TIMING) != 0) return 0;
    spare->made++;
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
    hamr_error *error = functions->wait_for_event(place->backend, place->device, place->handle, of->device, event,
                                                  &waits);
    return error ? core_raise(error) : 0;
}

int event_done(const StreamPlace *of, uint64_t event) {
    const hamr_functions *functions;
    int32_t done;
    if (place_usable(of, &functions) < 0) return -1;
    hamr_error *error = functions->event_done(of->backend, of->device, event, &done);
    return error ? core_raise(error) : done;
}

/* Gives an event to the core, which then has heard of all. */
static void give_core(const hamr_functions *functions, const char *backend, int32_t device, struct spare *spare,
                      uint64_t event, int failed) {
    int32_t made = spare ? spare->made : 0;
    if (spare) spare->made = 0;
    core_report((failed ? functions->drop_cached_event : functions->give_cached_event)(backend, device, event, made),
                NULL);
}

void event_give(const StreamPlace *of, uint64_t event, int failed) {
    const hamr_functions *functions = of->generation == core_generation ? core_functions() : NULL;
    if (!functions) return;
    int direct = of->own && of->device < MOST_DEVICES && place_driver(of, functions);
    struct spare *spare = direct ? spare_of(of) : NULL;
    if (spare && !failed && spare->count < MOST_EVENTS) spare->events[spare->count++] = event;
    else give_core(functions, of->backend, of->device, spare, event, failed);
}

/* give_events(): the core has all that are kept here. */
static PyObject *give_events(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    const hamr_functions *functions = core_functions();
    for (int device = 0; device < MOST_DEVICES; device++) {
        struct spare *spare = &spares[device];
        if (!functions || spare->generation != core_generation) continue;
        while (spare->count || spare->made)
            give_core(functions, "cuda", device, spare, spare->count ? spare->events[--spare->count] : 0, 0);
    }
    Py_RETURN_NONE;
}

PyMethodDef event_functions[] = {
    {"give_events", give_events, METH_NOARGS,
     "give_events(): give the core the events that are kept for reuse beside its own."},
    {NULL, NULL, 0, NULL},
};
