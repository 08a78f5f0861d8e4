/* Points in a stream's order, by events that are kept for reuse. */
#ifndef HAMR_SCHEDULING_EVENTS_H
#define HAMR_SCHEDULING_EVENTS_H

#include "base/python.h"
#include "scheduling/placed.h"

/* Each returns -1 with an exception. */
int event_record(const StreamPlace *place, uint64_t *event); /* 0: behind all that the stream has; event_give gives it back */
int event_wait(const StreamPlace *place, const StreamPlace *of, uint64_t event); /* 0: later work there comes after an event of */
int event_done(const StreamPlace *of, uint64_t event);       /* 1, or 0: it is pending */

void event_give(const StreamPlace *of, uint64_t event, int failed); /* it may be pending; failed: somebody was told that its work has */

extern PyMethodDef event_functions[];

#endif
