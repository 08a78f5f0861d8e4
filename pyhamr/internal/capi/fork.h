/* This process's copy of the core. */
#pragma once

#include "hamr/store_functions.h"

#define UNCONST(type, given) ((type *)(uintptr_t)(given)) /* Go's types have no const */
#define HAMR_EXPORT __attribute__((visibility("default")))

/* What a copy of the library offers besides its table. */
typedef struct {
    const hamr_functions *functions;
    hamr_error *(*limit_pool)(int32_t allocator, int32_t device, int64_t bytes);
    hamr_error *(*limit_kept)(int64_t bytes);
    hamr_error *(*limit_library)(char *library, char *backend, int32_t device, int64_t bytes);
    hamr_error *(*enter_tag)(char *name, int64_t *before);
    void (*leave_tag)(int64_t before);
    hamr_error *(*pause)(char *name, char *keep, char *folder);
    hamr_error *(*resume)(char *name);
    hamr_error *(*open_frame)(void *frame, size_t bytes, int *descriptors, int32_t count, hamr_array *result);
    uint64_t tracing;   /* address of 64 bits that are zero while nobody is told what the core does */
    uint64_t checking;  /* likewise, while nobody looks whether freed memory is written to */
    uint64_t watching;  /* address of 32 bits that are zero while nobody records, tracks or limits memory */
    int32_t configured; /* somebody has told it the settings */
} capi_core;

extern uint64_t capi_generation; /* another one in each process */
extern capi_core capi_own;      /* functions is NULL until the core was asked for */

void capi_set_spare_ends(uint64_t address);
void capi_set_recorded(uint64_t address);

/* Makes sure that there is a core; else what is wrong, in words. */
hamr_status capi_load(void);

/* The table of a core that is there. */
static inline const hamr_functions *capi_functions(void) {
    return __atomic_load_n(&capi_own.functions, __ATOMIC_ACQUIRE);
}

/* Whether somebody is told what the core does, which is there. */
static inline int capi_traced(void) {
    return __atomic_load_n((const uint64_t *)(uintptr_t)capi_own.tracing, __ATOMIC_RELAXED) != 0;
}

/* Whether all memory that is freed has to come to the core. */
static inline int capi_checked(void) {
    return __atomic_load_n((const uint64_t *)(uintptr_t)capi_own.checking, __ATOMIC_RELAXED) != 0;
}

/* Whether each allocation has to come to the core. */
static inline int capi_watched(void) {
    return __atomic_load_n((const uint32_t *)(uintptr_t)capi_own.watching, __ATOMIC_RELAXED) != 0;
}

#define CAPI_LOAD()                                           \
    do {                                                      \
        if (!capi_functions()) {                              \
            hamr_status status_ = capi_load();                \
            if (status_) return status_;                      \
        }                                                     \
    } while (0)
