/* The functions of the tables, and what they have in common. */
#pragma once

#include "entries.h"
#include "held.h"

/* NULL for programs of another version. It does not start the core: each function does that. */
HAMR_EXPORT const hamr_table *hamr_get_table(uint32_t version);

/* A new buffer of what the core has made, whose reference it takes over. */
hamr_status buffer_of(const hamr_array *array, hamr_buffer **made);

/* A new buffer with a part in memory that others have, which it takes over. */
hamr_status buffer_with(const hamr_array *array, Share *share, hamr_buffer **made);

/* Foreign memory: what from_dlpack and adopt have in common. */
hamr_status adopt_foreign(Draft *draft, hamr_deleter deleter, void *context, uint64_t producer, hamr_buffer **made);
