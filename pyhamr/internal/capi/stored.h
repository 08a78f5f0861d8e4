/* What the functions of hamr_store_table have in common. */
#pragma once

#include "object.h"

Numbered *numbered_new(Kind kind); /* NULL: no memory, which is told */
void numbered_free(Numbered *numbered); /* with its text */
hamr_status buffer_leased(const hamr_array *array, uint64_t lease, hamr_buffer **made);
