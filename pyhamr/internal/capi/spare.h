/* Small blocks of malloc's that were released, for who creates a buffer of the same size next: neither
 * calls into Go then. The core counts them as in use until its statistics are asked for. */
#pragma once

#include "object.h"

/* A new object that is a buffer, and the memory; NULL: there is none to be had so. */
Object *spare_take(uint64_t size, Share **share);
int spare_put(Share *share); /* 1: it was taken over */
/* Gives all back; how many buffers were made of them since the last time, and at untold, unless that is NULL, of how
 * much memory in use the core does not know. */
typedef int64_t (*hamr_drop_function)(int64_t *untold);
int64_t spares_drop(int64_t *untold);
void spares_of(hamr_drop_function drop); /* whose drop is to be called for the core of this copy */
void spares_forget(void);    /* in a forked child */
