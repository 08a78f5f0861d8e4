/* Streams and events of backends. */
#include <string.h>

#include "calls.h"

/* Fills what a stream and an event have in common. */
static hamr_status name_backend(struct hamr_stream *into, const char *backend, int32_t device) {
    if (!backend || strlen(backend) >= sizeof into->backend)
        return fail(HAMR_ERROR_VALUE, "backend is %s: accepted are names such as cuda", backend ? backend : "NULL");
    strcpy(into->backend, backend);
    into->device = device;
    return HAMR_OK;
}

/* The number of the calling thread's current device, or the one that is given. */
static hamr_status find_device(const char *backend, int32_t *device) {
    return *device == HAMR_CURRENT_DEVICE ? keep(capi_functions()->current_device(backend, device)) : HAMR_OK;
}

/* A new object with the vendor's handle, or 0 for one that is to be made. */
static hamr_status begin(Kind kind, const char *backend, int32_t device, void *native, struct hamr_stream **into) {
    struct hamr_stream found = {.native = (uint64_t)(uintptr_t)native};
    hamr_status status = name_backend(&found, backend, device);
    if (status) return status;
    CAPI_LOAD();
    if ((status = find_device(backend, &found.device))) return status;
    Object *object = object_new(kind);
    if (!object) return HAMR_ERROR_MEMORY;
    found.head = object->head;
    object->stream = found;
    *into = &object->stream;
    return HAMR_OK;
}

static hamr_status finish(struct hamr_stream *object, hamr_status status) {
    if (status) object_free(object);
    return status;
}

hamr_status capi_create_stream(const char *backend, int32_t device, hamr_stream **made) {
    struct hamr_stream *stream;
    CHECK_RESULT(made, "made");
    hamr_status status = begin(STREAM, backend, device, NULL, &stream);
    if (status) return status;
    if ((status = finish(stream, keep(capi_functions()->new_stream(backend, stream->device, &stream->native)))))
        return status;
    stream->made = 1;
    *made = stream;
    return HAMR_OK;
}

hamr_status capi_wrap_stream(const char *backend, int32_t device, void *native, hamr_stream **made) {
    struct hamr_stream *stream;
    CHECK_RESULT(made, "made");
    hamr_status status = begin(STREAM, backend, device, native, &stream);
    if (!status) *made = stream;
    return status;
}

void *capi_native_stream(const hamr_stream *stream) {
    return object_check(stream, STREAM, "stream") ? NULL : (void *)(uintptr_t)stream->native;
}

static void turn_to_default(Held *held, uint64_t native) {
    /* Also of one that has no memory, or the host's: it may come to a device. */
    if (held->array.stream == native) held_set_order(held, 0, held->array.transfer);
    if (held->share && held->share->memory.stream == native) held->share->memory.stream = 0;
}

/* The core's memory does without the stream already. */
static void do_without(Object *object, void *with) {
    if (object->head.kind == BUFFER) turn_to_default(&object->buffer.held, *(const uint64_t *)with);
    if (object->head.kind == HANDLE) turn_to_default(&object->handle.held, *(const uint64_t *)with);
}

hamr_status capi_release_stream(hamr_stream *stream) {
    CHECK_RELEASED(stream, stream->head, STREAM, "stream");
    hamr_status status = HAMR_OK;
    if (stream->made && stream->head.generation == capi_generation) {
        const hamr_functions *functions = capi_functions();
        int32_t over = 1;
        status = keep(functions->retire_stream(stream->native, &over));
        if (!status) objects_each(do_without, &stream->native);
        /* Better kept than ended under another thread. */
        if (!status && over) status = keep(functions->destroy_stream(stream->backend, stream->device, stream->native));
    }
    object_free(stream);
    return status;
}

static int64_t patience(int64_t milliseconds) { return milliseconds < 0 ? INT64_MAX : milliseconds; }

hamr_status capi_wait_stream(const hamr_stream *stream, int64_t milliseconds, int32_t *over) {
    int32_t unasked;
    CHECK(stream, STREAM, "stream");
    CAPI_LOAD();
    return keep(capi_functions()->wait_stream(stream->backend, stream->device, stream->native, patience(milliseconds),
                                              over ? over : &unasked));
}

hamr_status capi_stream_wait_event(const hamr_stream *stream, const hamr_event *event) {
    CHECK(stream, STREAM, "stream");
    CHECK(event, EVENT, "event");
    if (strcmp(stream->backend, event->same.backend) != 0)
        return fail(HAMR_ERROR_VALUE, "event is of %s: accepted are those of %s, as the stream", event->same.backend,
                    stream->backend);
    CAPI_LOAD();
    return keep(capi_functions()->stream_wait_event(stream->backend, stream->device, stream->native,
                                                    event->same.native));
}

hamr_status capi_record_event(const hamr_stream *stream, int32_t timed, hamr_event **made) {
    struct hamr_stream *event;
    CHECK_RESULT(made, "made");
    CHECK(stream, STREAM, "stream");
    hamr_status status = begin(EVENT, stream->backend, stream->device, NULL, &event);
    if (status) return status;
    const hamr_functions *functions = capi_functions();
    hamr_error *error = timed ? functions->record_timed_event(stream->backend, stream->device, stream->native,
                                                              &event->native)
                              : functions->record_event(stream->backend, stream->device, stream->native,
                                                        &event->native);
    if ((status = finish(event, keep(error)))) return status;
    event->made = 1;
    *made = (hamr_event *)event;
    return HAMR_OK;
}

hamr_status capi_wrap_event(const char *backend, int32_t device, void *native, hamr_event **made) {
    struct hamr_stream *event;
    CHECK_RESULT(made, "made");
    hamr_status status = begin(EVENT, backend, device, native, &event);
    if (!status) *made = (hamr_event *)event;
    return status;
}

void *capi_native_event(const hamr_event *event) {
    return object_check(event, EVENT, "event") ? NULL : (void *)(uintptr_t)event->same.native;
}

hamr_status capi_release_event(hamr_event *event) {
    CHECK_RELEASED(event, event->same.head, EVENT, "event");
    const struct hamr_stream *same = &event->same;
    hamr_status status = HAMR_OK;
    if (same->made && same->head.generation == capi_generation)
        status = keep(capi_functions()->destroy_event(same->backend, same->device, same->native));
    object_free(event);
    return status;
}

hamr_status capi_wait_event(const hamr_event *event, int64_t milliseconds, int32_t *over) {
    int32_t unasked;
    CHECK(event, EVENT, "event");
    CAPI_LOAD();
    return keep(capi_functions()->wait_event(event->same.backend, event->same.device, event->same.native,
                                             patience(milliseconds), over ? over : &unasked));
}

hamr_status capi_elapsed(const hamr_event *from, const hamr_event *to, int64_t *nanoseconds) {
    CHECK_RESULT(nanoseconds, "nanoseconds");
    CHECK(from, EVENT, "from");
    CHECK(to, EVENT, "to");
    if (strcmp(from->same.backend, to->same.backend) != 0)
        return fail(HAMR_ERROR_VALUE, "to is of %s: accepted are events of %s, as from", to->same.backend,
                    from->same.backend);
    CAPI_LOAD();
    return keep(capi_functions()->elapsed(from->same.backend, from->same.device, from->same.native, to->same.native,
                                          nanoseconds));
}
