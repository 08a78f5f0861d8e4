/* Launches that need not ask the Go core. */
#pragma once

#include "hamr/functions.h"
#include "kernels/launch.h"

/* The streams that the core was told of launches on. */
typedef struct {
    struct {
        uint64_t stream, ended;
        int32_t device;
    } streams[4];
    unsigned next;
} Told;

/* Enqueues a launch of a kernel of CUDA's, if nothing has to be waited for or recorded: then what it
 * uses is hamr's own memory, only used on the stream of the launch. 1: done; 0: the core has to see to it;
 * -1: an exception. */
int launch_directly(Launch *launch, const hamr_kernel *kernel, Told *told);

/* Keeps for the next time that the stream of a launch holds all that is pending on its arguments. */
void launch_covered(Launch *launch, const hamr_argument *arguments);
