/* Points in a stream's order, by events that are kept for reuse. */
#pragma once

#include "base/python.h"
#include "scheduling/placed.h"

/* Each returns -1 with an exception. */
/* Records an event behind all that the stream holds: 0. event_give gives it back. */
int event_record(const StreamPlace *place, uint64_t *event);
/* Makes later work at place wait for an event of another stream: 0. */
int event_wait(const StreamPlace *place, const StreamPlace *of, uint64_t event);
int event_done(const StreamPlace *of, uint64_t event);       /* 1, or 0: it is pending */

/* The event may be pending. failed: somebody was told that its work has failed. */
void event_give(const StreamPlace *of, uint64_t event, int failed);

extern PyMethodDef event_functions[];
