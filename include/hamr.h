/* hamr for C and C++: memory that any device and any array library can share.
 *
 *     hamr_buffer *field;
 *     int64_t n = 1024;
 *     if (hamr_create(&field, HAMR_FLOAT64, 1, &n, NULL, NULL)) return fail(hamr_last_error());
 *     double *values = hamr_data(field);
 *     …
 *     hamr_release(field);
 *
 * Nothing is linked: the first call finds the library, see hamr/open.h, and shares it with Python
 * where that is in the process. What the functions do is said in hamr/interface.h, at the table's
 * entry of the same name. Needs -ldl and -pthread where the C library is older than glibc 2.34. */
#ifndef HAMR_H
#define HAMR_H

#include "hamr/interface.h"
#include "hamr/open.h"
#include "hamr/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Finds the library now. Any function does, at its first call. */
static inline hamr_status hamr_open(void) { return hamr_get() ? HAMR_OK : HAMR_ERROR_LIBRARY; }

/* What went wrong in the calling thread's last call; "" if nothing did. Never NULL. A release that succeeds
 * leaves what there was. */
static inline const char *hamr_last_error(void) {
    const hamr_table *table = hamr_open_error[0] ? NULL : hamr_get();
    return table ? table->last_error() : hamr_open_error;
}

static inline void hamr_last_failure(hamr_failure *failure) {
    const hamr_table *table = hamr_open_error[0] ? NULL : hamr_get();
    memset(failure, 0, sizeof *failure);
    if (table) {
        table->last_failure(failure, sizeof *failure);
    } else {
        failure->status = HAMR_ERROR_LIBRARY;
        failure->message = hamr_open_error;
    }
}

/* NULL without a library. */
static inline const char *hamr_library_version(void) {
    const hamr_table *table = hamr_get();
    return table ? table->library_version() : NULL;
}

#define HAMR_TABLE_WITH(name) hamr_get_with(offsetof(hamr_table, name) + sizeof(void (*)(void)), #name)
#include "hamr/calls.h"
#undef HAMR_TABLE_WITH

/* Of a buffer's info; 0 where there is no buffer. */
static inline int64_t hamr_size(const hamr_buffer *buffer) {
    const hamr_info *info = hamr_info_of(buffer);
    return info ? info->size : 0;
}

/* The name of an allocator, as Python has it; NULL of a number that is none. */
static inline const char *hamr_allocator_name(int32_t allocator) {
    switch (allocator) {
#define HAMR_NAME(allocator, number, name, ...) case number: return name;
        HAMR_ALLOCATOR_FACTS(HAMR_NAME)
#undef HAMR_NAME
    default: return NULL;
    }
}

/* The name of an element type, as NumPy has it; NULL of a number that is none. */
static inline const char *hamr_element_name(int32_t element) {
    switch (element) {
#define HAMR_NAME(type, number, name, ...) case number: return name;
        HAMR_ELEMENT_TYPES(HAMR_NAME)
#undef HAMR_NAME
    default: return NULL;
    }
}

/* In bytes; 0 of a number that is none. */
static inline int64_t hamr_element_size(int32_t element) {
    switch (element) {
#define HAMR_SIZE(type, number, name, size, ...) case number: return size;
        HAMR_ELEMENT_TYPES(HAMR_SIZE)
#undef HAMR_SIZE
    default: return 0;
    }
}

#ifdef __cplusplus
}
#endif

#endif
