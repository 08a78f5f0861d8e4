/* What went wrong, for each thread. */
#pragma once

#include "hamr/functions.h"
#include "hamr/interface.h"

hamr_status keep(hamr_error *error); /* takes it over; NULL is HAMR_OK */
/* Whether the thread's last call has failed. Each call writes it, so it is where a thread finds it without a call. */
extern _Thread_local int failure_is_told __attribute__((visibility("hidden"), tls_model("initial-exec")));

static inline void forget_failure(void) { failure_is_told = 0; } /* at the beginning of a call, which may succeed */
hamr_status fail(hamr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
