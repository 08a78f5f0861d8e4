/* Devices, and the memory of the process. */
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "calls.h"
#include "spare.h"

#define CHECK_NAME(name, value)                                                                          \
    do {                                                                                                 \
        if (!(value)) return fail(HAMR_ERROR_VALUE, name " is NULL: accepted is a name");                \
    } while (0)

/* The body of what one call about a backend does, once its results have places. */
#define ASK(call)                     \
    CHECK_NAME("backend", backend);   \
    CAPI_LOAD();                      \
    return keep(capi_functions()->call)

/* Of functions without a result, whose call succeeds or fails from here on. */
#define LOAD_AND_FORGET()     \
    do {                      \
        CAPI_LOAD();          \
        forget_failure();     \
    } while (0)

const char *capi_library_version(void) { return capi_load() ? "" : capi_functions()->library_version(); }

hamr_status capi_device_count(const char *backend, int32_t *count) {
    CHECK_RESULT(count, "count");
    ASK(device_count(backend, count));
}

hamr_status capi_current_device(const char *backend, int32_t *device) {
    CHECK_RESULT(device, "device");
    ASK(current_device(backend, device));
}

hamr_status capi_enter_device(const char *backend, int32_t device, uint64_t *before) {
    CHECK_RESULT(before, "before");
    ASK(activate(backend, device, before));
}

hamr_status capi_leave_device(const char *backend, uint64_t before) {
    ASK(restore(backend, before));
}

hamr_status capi_can_access_peer(const char *backend, int32_t user, int32_t owner, int32_t *can) {
    CHECK_RESULT(can, "can");
    ASK(can_access(backend, user, owner, can));
}

hamr_status capi_enable_peer(const char *backend, int32_t user, int32_t owner) {
    CHECK_NAME("backend", backend);
    LOAD_AND_FORGET();
    return keep(capi_functions()->enable_peer(backend, user, owner));
}

hamr_status capi_disable_peer(const char *backend, int32_t user, int32_t owner) {
    CHECK_NAME("backend", backend);
    LOAD_AND_FORGET();
    return keep(capi_functions()->disable_peer(backend, user, owner));
}

hamr_status capi_memory_info(const char *backend, int32_t device, int64_t *free, int64_t *total) {
    CHECK_RESULT(free, "free");
    CHECK_RESULT(total, "total");
    ASK(memory_info(backend, device, free, total));
}

hamr_status capi_locate(const void *address, hamr_found *found) {
    CHECK_RESULT(found, "found");
    CAPI_LOAD();
    hamr_location location;
    hamr_status status = keep(capi_functions()->locate((uint64_t)(uintptr_t)address, &location));
    if (status == HAMR_ERROR_UNAVAILABLE) { /* no runtime at all */
        *found = (hamr_found){.allocator = HAMR_ALLOCATOR_ANY, .device = HAMR_HOST_DEVICE};
        return HAMR_OK;
    }
    if (status) return status;
    *found = (hamr_found){.base = (void *)(uintptr_t)location.base, .bytes = location.size,
                          .allocator = location.allocator, .device = location.device};
    return HAMR_OK;
}

hamr_status capi_has_backend(const char *name, int32_t *available, char **reason) {
    CHECK_RESULT(available, "available");
    CHECK_NAME("name", name);
    CAPI_LOAD();
    hamr_backend *found;
    hamr_status status = keep(capi_functions()->backend(name, &found));
    if (status) return status;
    *available = found->available;
    if (reason) *reason = found->reason ? strdup(found->reason) : NULL;
    capi_functions()->free(found);
    return HAMR_OK;
}

hamr_status capi_preferred_allocator(int32_t for_host, int32_t *allocator) {
    CHECK_RESULT(allocator, "allocator");
    CAPI_LOAD();
    return keep(capi_functions()->preferred_allocator(for_host, allocator));
}

_Static_assert(sizeof(hamr_usage) == sizeof(hamr_statistics) &&
               offsetof(hamr_usage, reused) == offsetof(hamr_statistics, reused), "one is filled as the other");

int32_t capi_memory_usage(hamr_usage *rows, int32_t room) {
    if (capi_load()) return 0;
    return capi_functions()->statistics((hamr_statistics *)rows, rows ? room : 0);
}

void capi_reset_peaks(void) {
    if (!capi_load()) capi_functions()->reset_peaks();
}

hamr_status capi_trim(void) {
    LOAD_AND_FORGET();
    spares_drop(NULL);
    return keep(capi_functions()->trim());
}

hamr_status capi_set_limit(int32_t allocator, int32_t device, int64_t bytes) {
    if (allocator < 0 || allocator >= HAMR_ALLOCATOR_COUNT)
        return fail(HAMR_ERROR_VALUE, "allocator is %d: accepted are those of hamr_allocator", allocator);
    if (bytes < -2)
        return fail(HAMR_ERROR_VALUE,
                    "bytes is %lld: accepted are 0 and more, -1 for none, and -2 for the limit of the start",
                    (long long)bytes);
    LOAD_AND_FORGET();
    return keep(capi_own.limit_pool(allocator, device, bytes));
}

hamr_status capi_limit_in_use(const char *library, const char *backend, int32_t device, int64_t bytes) {
    if (bytes < -1)
        return fail(HAMR_ERROR_VALUE, "bytes is %lld: accepted are 0 and more, and -1 for no limit", (long long)bytes);
    LOAD_AND_FORGET();
    return keep(capi_own.limit_library(UNCONST(char, library ? library : "hamr"), UNCONST(char, backend ? backend : ""),
                                       device, bytes));
}

hamr_status capi_limit_kept(int64_t bytes) {
    if (bytes < -2)
        return fail(HAMR_ERROR_VALUE,
                    "bytes is %lld: accepted are 0 and more, -1 for none, and -2 for the limit of the start",
                    (long long)bytes);
    LOAD_AND_FORGET();
    return keep(capi_own.limit_kept(bytes));
}

hamr_status capi_configure(const char *name, const char *value) {
    CHECK_NAME("name", name);
    if (!value) return fail(HAMR_ERROR_VALUE, "value is NULL: accepted is a text, which may be empty");
    if (strncmp(name, "HAMR_", 5) != 0)
        return fail(HAMR_ERROR_VALUE, "name is %s: accepted are variables whose name begins with HAMR_", name);
    LOAD_AND_FORGET();
    return keep(capi_functions()->configure(name, value));
}

hamr_status capi_set_verbose(int32_t level) {
    if (level < 0 || level > 1) return fail(HAMR_ERROR_VALUE, "level is %d: accepted are 0 and 1", level);
    LOAD_AND_FORGET();
    return keep(capi_functions()->set_verbose(level));
}

hamr_status capi_enter_pausable(const char *name, int64_t *before) {
    CHECK_RESULT(before, "before");
    if (!name) return fail(HAMR_ERROR_VALUE, "name is NULL: accepted is a name");
    LOAD_AND_FORGET();
    return keep(capi_own.enter_tag(UNCONST(char, name), before));
}

hamr_status capi_leave_pausable(int64_t before) {
    LOAD_AND_FORGET();
    capi_own.leave_tag(before);
    return HAMR_OK;
}

hamr_status capi_pause(const char *name, const char *keeping, const char *folder) {
    LOAD_AND_FORGET();
    return keep(capi_own.pause(UNCONST(char, name ? name : ""), UNCONST(char, keeping ? keeping : ""),
                               UNCONST(char, folder ? folder : "")));
}

hamr_status capi_resume(const char *name) {
    LOAD_AND_FORGET();
    return keep(capi_own.resume(UNCONST(char, name ? name : "")));
}
