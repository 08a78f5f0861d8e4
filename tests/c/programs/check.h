/* What the tests' programs have in common: a check that fails says where, and what hamr said. */
#ifndef CHECK_H
#define CHECK_H

#include "hamr.h"

#define FAIL(what)                                                                                 \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: %s; hamr says: %s\n", __FILE__, __LINE__, what, hamr_last_error()); \
        exit(1);                                                                                   \
    } while (0)
#define TRUE(condition)                  \
    do {                                 \
        if (!(condition)) FAIL(#condition); \
    } while (0)
#define OK(call) TRUE((call) == HAMR_OK)

/* The call fails so, with words that have these among them. */
#define FAILS(call, status, words)                           \
    do {                                                     \
        TRUE((call) == (status));                            \
        TRUE((strstr)(hamr_last_error(), words) != NULL); /* a macro of newer glibc is no C99 */ \
    } while (0)

static inline hamr_usage usage_of(int32_t allocator) {
    hamr_usage rows[HAMR_ALLOCATOR_COUNT], none;
    int32_t n = hamr_memory_usage(rows, HAMR_ALLOCATOR_COUNT);
    memset(&none, 0, sizeof none);
    for (int32_t i = 0; i < n; i++)
        if (rows[i].allocator == allocator) return rows[i];
    return none;
}

#endif
