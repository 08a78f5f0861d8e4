/* The handles of CUDA's that name no object of a stream. */
#pragma once

enum {
    UNKNOWN_STREAM = -1,   /* a consumer's, of which nothing is known */
    LEGACY_STREAM = 1,     /* the legacy default stream */
    PER_THREAD_STREAM = 2, /* another stream on every thread */
};
