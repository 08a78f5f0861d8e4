/* What went wrong, for each thread. */
#ifndef HAMR_CAPI_FAILURE_H
#define HAMR_CAPI_FAILURE_H

#include "hamr/functions.h"
#include "hamr/interface.h"

hamr_status keep(hamr_error *error); /* takes it over; NULL is HAMR_OK */
void forget_failure(void); /* at the begin of a call, which may succeed */
hamr_status fail(hamr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *last_error(void);
void last_failure(hamr_failure *failure, size_t size);

#endif
