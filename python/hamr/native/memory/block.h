/* One allocation, shared by the arrays that use it. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"
#include "memory/owner.h"
#include "plain/memory.h"

/* Python's reference count of the Block is the number of Python objects that use the
 * memory; the Block holds one reference in the Go core. */
typedef struct {
    PyObject_HEAD
    Memory memory;
    uint64_t producer;   /* the stream that the owner's work is on, until the core knows */
    Owner *owner;        /* NULL for memory of our own */
    PyObject *lent_life; /* what share keeps last, for comparison: not owned */
    struct Share *share; /* which has the token where C has the memory, too; or NULL */
    uint64_t covered;    /* what was at marks, in 64 bits, when the stream below held all that was pending; or 0 */
    uint64_t covered_by;
    char several_streams; /* arrays were used on others than stream, too */
    char used_by_default; /* others had it on the legacy default stream */
    char used_anywhere;   /* others had it on streams that may have ended since */
    char reused_in_order; /* by its owner's own rule: after what its streams hold */
    char kept;            /* a temporary that other Blocks are of, too, with streams of theirs */
} Block;

extern PyTypeObject *block_type;
Block *block_new(const hamr_array *array, Owner *owner); /* takes over token and owner */
Block *block_spare(void); /* without memory */
/* Takes over token and owner. */
void block_fill(Block *block, const hamr_array *array, Owner *owner, uint64_t generation);
void block_give_back(const hamr_array *array); /* memory that no Block has */
int block_register(Block *block);
int block_survives(const Block *block); /* a fork, if there was one: 0, or -1 with an exception */
/* Releases the core's memory that others have used on unknown streams. */
void block_release_unseen(int32_t allocator, uint64_t token);
void blocks_forget(void); /* after a fork: what was counted was the parent's */
void block_used_on(const Block *block, uint64_t stream); /* an array that used it on the stream ends */
void block_keep(Block *block); /* what the core has handed out before */
/* Whoever uses the memory next waits for what the stream holds now. 0, or -1 with an exception. */
int block_leave(Block *block, uint64_t stream);
/* A consumer had the memory on stream, -1 if unknown: the release waits for what it holds. */
void block_shared_with(Block *block, int64_t stream);
int block_foreign_work(const Block *block); /* the core does not know of the owner's work yet */
int block_share(Block *block); /* makes sure that C can have it: there is a share; 0, or -1 with an exception */
int block_is_sole(const Block *block); /* nobody in C has it */
extern PyMethodDef block_functions[];
int block_setup(PyObject *module);
