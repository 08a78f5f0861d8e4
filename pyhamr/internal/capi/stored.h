/* What the functions of hamr_store_table have in common. */
#pragma once

#include "object.h"

#define GO capi_own.functions->store

#define CHECK_ID(id)                                                                                \
    do {                                                                                            \
        if (!(id)) return fail(HAMR_ERROR_VALUE, #id " is NULL: accepted is the id of an object");  \
    } while (0)
#define CHECK_SESSION(store)        \
    do {                            \
        CHECK(store, SESSION, "store"); \
        CAPI_LOAD();                \
    } while (0)

Numbered *numbered_new(Kind kind); /* NULL: no memory, which is told */
void numbered_free(Numbered *numbered); /* with its text */
/* Checks of what new objects are given. */
hamr_status check_flags(uint32_t flags, const void *metadata, size_t bytes);
hamr_store_text text_of(const char *text);
hamr_status buffer_leased(const hamr_array *array, uint64_t lease, hamr_buffer **made);
