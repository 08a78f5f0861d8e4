/* Which elements of which type a schema and an array of Arrow describe. */
#pragma once

#include "hamr/functions.h"
#include "protocols/arrow.h"

const char *arrow_format(int32_t element); /* NULL if there is none */
/* Sets element, ndim and shape[1 ...]. 0, or -1 with an exception. */
int arrow_read_schema(const struct ArrowSchema *schema, hamr_array *into);
/* Sets shape[0], strides and pointer, after arrow_read_schema. */
int arrow_read_array(const struct ArrowArray *array, int on_host, hamr_array *into);
