/* One allocation, shared by the arrays that use it. */
#ifndef HAMR_MEMORY_BLOCK_H
#define HAMR_MEMORY_BLOCK_H

#include "base/python.h"
#include "hamr/functions.h"
#include "memory/owner.h"

/* Python's reference count of the Block is the number of Python objects that use the
 * memory; the Block holds one reference in the Go core. */
typedef struct {
    PyObject_HEAD
    uint64_t token;      /* 0: the core does not know the memory (yet) */
    uint64_t generation; /* the copy of the library that the token belongs to */
    uint64_t base;
    uint64_t size;
    uint64_t stream;
    uint64_t marks;      /* as in hamr_array */
    uint64_t producer;   /* the stream that the owner's work is on, until the core knows */
    int32_t allocator;
    int32_t device;
    Owner *owner;        /* NULL for memory of our own */
    PyObject *lent_life; /* what share keeps last, for comparison: not owned */
    struct Share *share; /* which has the token where C has the memory, too; or NULL */
    uint64_t covered;    /* what was at marks, in 64 bits, when the stream below held all that was pending; or 0 */
    uint64_t covered_by;
    char several_streams; /* arrays were used on others than stream, too */
    char used_by_default; /* others had it on the legacy default stream */
    char used_anywhere;   /* others had it on streams that may have ended since */
    char address_known;   /* to others, who need not say on which streams they use it */
    char reused_in_order; /* by its owner's own rule: after what its streams hold */
    char kept;            /* a temporary that other Blocks are of, too, with streams of theirs */
} Block;

/* The marks at an address, read before the elements are: no work is pending on them if
 * it is zero. */
static inline uint32_t marks_at(uint64_t address) {
    return address ? __atomic_load_n((const uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE) : 0;
}

extern PyTypeObject *block_type;
Block *block_new(const hamr_array *array, Owner *owner); /* takes over token and owner */
Block *block_spare(void); /* without memory */
void block_fill(Block *block, const hamr_array *array, Owner *owner, uint64_t generation); /* takes over token and owner */
void block_give_back(const hamr_array *array); /* memory that no Block has */
int block_register(Block *block);
void block_release_unseen(int32_t allocator, uint64_t token); /* memory that others have used on whatever streams, of the core, which is there */
void blocks_forget(void); /* after a fork: what was counted was the parent's */
void block_used_on(const Block *block, uint64_t stream); /* an array that used it on the stream ends */
void block_keep(Block *block); /* what the core has handed out before */
int block_leave(Block *block, uint64_t stream); /* whoever uses the memory waits for what the stream holds now; 0, or -1 with an exception */
void block_shared_with(Block *block, int64_t stream); /* a consumer's, -1 unknown: the memory's release waits for what it holds */
int block_foreign_work(const Block *block); /* the core does not know of the owner's work yet */
int block_share(Block *block); /* makes sure that C can have it: there is a share; 0, or -1 with an exception */
int block_is_sole(const Block *block); /* nobody in C has it */
extern PyMethodDef block_functions[];
int block_setup(PyObject *module);

#endif
