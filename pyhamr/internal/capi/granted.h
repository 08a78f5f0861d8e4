/* Device memory that a library has freed is kept for its next allocation of the same size on the same stream. Neither
 * calls into Go then. Work on the stream runs in order, so nobody has to wait. The core counts the memory as the
 * library's until it takes it back: before it takes memory from the system, and before it counts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What somebody has, or had: of streams that stay, so that the order of one means something. */
typedef struct {
    uint64_t address, size, stream;
    int32_t device, library;
    int freed; /* it is kept */
} Granted;

int granted_take(Granted *wanted);                                     /* 0: there is none; else its address is set */
void granted_note(const Granted *granted);                             /* somebody has it now */
void granted_forget(uint64_t address);                                 /* who has it uses it on other streams, too */
/* Keeps memory that is free now. What is to be given back is returned: that memory, another, or none. Memory that is
 * kept already, of a caller that frees it twice, stays so. */
uint64_t granted_put(uint64_t address);
/* How many more use this; with none nothing is kept, nor while one of the core's words is not zero: a trace's, and
 * that of what watches memory. */
void granted_use(int by, uintptr_t trace, uintptr_t watched);
void granted_stream(int32_t device, uint64_t stream, int stays); /* what ended must not be asked any more */
int granted_drop(void);         /* gives back what is kept: whether there was any */
int64_t granted_handed_out(void); /* how often some was, since the start */

/* Sets the tag of what the calling thread allocates, unless it is below zero, and returns the one before: see
 * backends.Tag. */
int64_t capi_thread_tag(int64_t tag);

/* The same of the use of parts that the calling thread is in: see bridge.EnterParts. */
int64_t capi_thread_use(int64_t use);

/* How often CuPy's hook has had no memory for the calling thread, to which by is added. */
int capi_cupy_misses(int by);
