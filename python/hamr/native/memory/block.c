#include "memory/block.h"

#include <string.h>

#include "base/containers.h"
#include "base/heap_type.h"
#include "base/python.h"
#include "base/streams.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/stacks.h"
#include "memory/exchange.h"
#include "memory/owner.h"
#include "memory/view.h"
#include "plain/allocators.h"
#include "plain/memory.h"

#define LONG_FREE (4u << 20) /* bytes whose return to the system is worth letting other threads run */

/* Of memory whose order its owner sees to, or that waits anyway, nothing more is asked. */
static int waits_for_all(const Block *block) {
    return memory_waits_for_all(&block->memory) && !block->reused_in_order && !block->used_anywhere && !block->owner;
}

/* Whether giving the memory back may wait for the system or for a device, which may
 * itself wait for a callback in Python. Another library's work is not waited for. */
static int release_is_long(const Block *block) {
    int of_device = is_of_device(block->memory.allocator);
    if (of_device && !block->owner)
        return !is_ordered(block->memory.allocator) || block->used_anywhere || waits_for_all(block);
    if (!block->owner && block->memory.size >= LONG_FREE) return 1;
    return (marks_at(block->memory.marks) & HAMR_OWN_WORK) != 0;
}

/* Whether the core may keep the memory for who asks next. */
static int may_be_kept(const Block *block) {
    return !block->owner && !block->share && !block->used_anywhere && !block->reused_in_order &&
        memory_kind(block->memory.allocator) == HAMR_DEVICE_ONLY;
}

PyTypeObject *block_type;

/* Memory that the core was not told of yet, by allocator: foreign memory, and small temporaries. */
static int64_t waiting[HAMR_ALLOCATORS];

static int64_t *waiting_as(const Block *block) {
    int lazy = !block->memory.token && block->owner && block->memory.generation == core_generation;
    return lazy ? &waiting[block->memory.allocator] : NULL;
}

void blocks_forget(void) { memset(waiting, 0, sizeof waiting); }

void block_give_back(const hamr_array *array) {
    const hamr_functions *functions = core_functions();
    if (!functions) return; /* a forked child: it never had the memory */
    stacks_note();
    if (is_of_device(array->allocator) ? !is_ordered(array->allocator) : array->size >= LONG_FREE) {
        Py_BEGIN_ALLOW_THREADS
        functions->release(array->memory);
        Py_END_ALLOW_THREADS
    } else {
        functions->release(array->memory);
    }
    stacks_forget();
    owner_drain();
}

Block *block_spare(void) { return type_allocate(block_type); }

Block *block_new(const hamr_array *array, Owner *owner) {
    uint64_t generation = core_generation; /* the token's: making an object may run a finaliser that forks */
    Block *block = block_spare();
    if (!block) {
        if (array->memory && generation == core_generation) block_give_back(array);
        else owner_drop(owner);
        owner_drain();
        return NULL;
    }
    block_fill(block, array, owner, generation);
    return block;
}

void block_fill(Block *block, const hamr_array *array, Owner *owner, uint64_t generation) {
    memory_fill(&block->memory, array, generation);
    block->owner = owner;
    int64_t *counted = waiting_as(block);
    if (counted) ++*counted;
}

int block_foreign_work(const Block *block) { return !block->memory.token && block->producer; }

static void nothing(void *memory) { (void)memory; }

/* In a forked child nobody counts who has memory that C had, too: others of its Blocks may be here. So it stays,
 * and what keeps it. */
static int leave_to_parent(Block *block) {
    Owner *owner = owner_of_memory(block, nothing);
    if (!owner) return -1;
    block->owner = owner;
    exchange_end(block->share, block->memory.stream);
    block->share = NULL;
    block->lent_life = NULL;
    return 0;
}

int block_survives(const Block *block) {
    if (block->memory.generation == core_generation) return 0;
    if (is_of_device(block->memory.allocator)) return core_forked();
    return marks_at(block->memory.marks) & HAMR_WRITTEN_LATE ? core_forked_before_writing() : 0;
}

/* Makes sure that the copy of the Go core in this process knows the memory. */
int block_register(Block *block) {
    if (block->memory.token && block->memory.generation == core_generation) return 0;
    if (core_load() < 0) return -1;
    /* Another thread may have done it while this one loaded the core. */
    if (block->memory.token && block->memory.generation == core_generation) return 0;
    int of_device = is_of_device(block->memory.allocator);
    if (block_survives(block) < 0) return -1;
    if (block->share && leave_to_parent(block) < 0) return -1;
    int64_t dimensions[2], *counted = waiting_as(block);
    hamr_array whole = memory_whole(&block->memory, dimensions);
    uint64_t key = (uint64_t)(uintptr_t)block->owner;
    hamr_error *error = of_device ? core_functions()->adopt_device(&whole, key, owner_finished, block->producer)
                              : core_functions()->adopt(&whole, key, owner_finished);
    if (error) return core_raise(error);
    if (counted) --*counted;
    block->memory.token = whole.memory;
    block->memory.marks = whole.marks;
    block->memory.generation = core_generation;
    return 0;
}

void block_release_unseen(int32_t allocator, uint64_t token) {
    const hamr_functions *functions = core_functions();
    if (is_pooled(allocator)) functions->release_after(token, HAMR_EVERY_STREAM);
    functions->release(token);
}

static void give_back(const hamr_functions *functions, struct Share *share, uint64_t token, uint64_t stream) {
    if (share) exchange_end(share, stream);
    else functions->release(token);
}

static void block_release(Block *block) {
    const hamr_functions *functions = core_functions();
    uint64_t token = block->memory.token;
    int64_t *counted = waiting_as(block);
    if (counted) --*counted;
    block->memory.token = 0;
    if (token && block->memory.generation == core_generation && functions) {
        int is_long = release_is_long(block), kept = may_be_kept(block);
        stacks_note();
        int waits = waits_for_all(block);
        if (waits) functions->release_after(token, HAMR_EVERY_STREAM);
        block->owner = NULL; /* comes back through owner_finished */
        if (block->used_by_default && !block->used_anywhere) functions->release_after(token, LEGACY_STREAM);
        if (kept && !waits && functions->release_at_once(token)) {
            /* Nobody had to be waited for. */
        } else if (is_long) {
            Py_BEGIN_ALLOW_THREADS
            give_back(functions, block->share, token, block->memory.stream);
            Py_END_ALLOW_THREADS
        } else {
            give_back(functions, block->share, token, block->memory.stream);
        }
        stacks_forget();
        block->share = NULL;
        owner_drain();
    } else if (block->share) { /* the parent's, see leave_to_parent */
        exchange_end(block->share, block->memory.stream);
        block->share = NULL;
    } else if (block->owner) {
        owner_finished((uint64_t)(uintptr_t)block->owner);
        block->owner = NULL;
        owner_drain();
    } else if (token && block->memory.base) {
        core_free_directly(block->memory.allocator, block->memory.base);
    }
}

int block_share(Block *block) {
    if (block_register(block) < 0) return -1;
    if (block->share) return 0;
    const hamr_exchange *exchange = exchange_get();
    if (!exchange || block_register(block) < 0) return -1; /* again: Python code may have forked */
    if (block->share) return 0;
    int64_t dimensions[2];
    hamr_array array = memory_whole(&block->memory, dimensions);
    array.memory = block->memory.token;
    array.marks = block->memory.marks;
    if (exchange->share(&array, block->owner != NULL, &block->share)) return exchange_raise();
    block->several_streams = 1; /* C's */
    return 0;
}

int block_is_sole(const Block *block) { return !block->share || exchange_users(block->share) == 1; }

/* What the core can be asked about memory of a device that it knows; NULL else. */
static const hamr_functions *known_by(const Block *block) {
    if (!is_of_device(block->memory.allocator)) return NULL;
    return block->memory.token && block->memory.generation == core_generation ? core_functions() : NULL;
}

/* Only memory of a pool is freed without a look at what other streams hold. Plain device memory
 * may come from one, which the core knows. */
static const hamr_functions *ordered_by(const Block *block) {
    return !is_pooled(block->memory.allocator) || block->owner ? NULL : known_by(block);
}

void block_used_on(const Block *block, uint64_t stream) {
    const hamr_functions *functions = stream == block->memory.stream && !block->several_streams ? NULL
        : known_by(block);
    /* Where it fails, the release waits for the device instead. */
    if (functions) functions->release_after(block->memory.token, stream);
}

void block_keep(Block *block) { block->kept = block->several_streams = 1; }

int block_leave(Block *block, uint64_t stream) {
    if (!is_of_device(block->memory.allocator)) return 0;
    if (block_register(block) < 0) return -1;
    block->several_streams = 1;
    hamr_error *error = core_functions()->leave(block->memory.token, stream);
    return error ? core_raise(error) : 0;
}

/* Called when a consumer is done. Its stream may have ended, and cannot be recorded on
 * then; what is recorded on the default stream would make the buffer's wait at once. So
 * the release itself waits: for the default stream, which never ends, or for all. */
void block_shared_with(Block *block, int64_t stream) {
    const hamr_functions *functions = ordered_by(block);
    if (!functions) return;
    if (stream == LEGACY_STREAM && memory_kind(block->memory.allocator) != HAMR_PINNED) { /* every device has one */
        block->used_by_default = block->kept || block->memory.stream > LEGACY_STREAM;
    } else if (stream > PER_THREAD_STREAM && (uint64_t)stream == block->memory.stream) {
        functions->release_after(block->memory.token, block->memory.stream);
    } else if (!block->used_anywhere) {
        block->used_anywhere = 1;
        functions->release_after(block->memory.token, HAMR_EVERY_STREAM);
    }
}

static void block_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    block_release((Block *)self);
    type_free(self);
}

static int block_traverse(PyObject *self, visitproc visit, void *arg) {
    Block *block = (Block *)self;
    Py_VISIT(Py_TYPE(self));
    if (block->owner) {
        Py_VISIT(block->owner->object);
        if (block->owner->view && view_may_be_seen(block->owner->view)) Py_VISIT(block->owner->view->obj);
    }
    return 0;
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, block_dealloc},
    {Py_tp_traverse, block_traverse},
    {Py_tp_doc, "One allocation, shared by the buffers and handles that use it."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.Block",
    .basicsize = sizeof(Block),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int block_setup(PyObject *module) {
    return type_add(module, &block_type, &spec, NULL);
}

/* waiting() -> [(allocator, count)]: memory in use that the core does not know yet. */
static PyObject *waiting_list(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    PyObject *list = PyList_New(0);
    for (int a = 0; list && a < HAMR_ALLOCATORS; a++)
        if (waiting[a]) list_put(&list, Py_BuildValue("(iL)", a, (long long)waiting[a]));
    return list;
}

PyMethodDef block_functions[] = {
    {"waiting", waiting_list, METH_NOARGS,
     "waiting() -> [(allocator, count)]: memory in use that the core does not know yet."},
    {NULL, NULL, 0, NULL},
};
