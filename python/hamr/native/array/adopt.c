#include "array/adopt.h"

#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "base/python.h"
#include "base/streams.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/stacks.h"
#include "memory/block.h"
#include "memory/owner.h"
#include "plain/allocators.h"
#include "plain/layout.h"
#include "plain/memory.h"

/* Memory of CUDA's that is not said to be elsewhere is the calling thread's current device's.
 * Where that cannot be told the core asks again. */
void place_array(hamr_array *array, const hamr_devices *devices) {
    enum { NO_CONTEXT = 201 };
    int current = 0;
    if (array->device >= 0 || devices->cuda_count < 1 || !is_of_cuda(array->allocator)) return;
    int code = devices->cuda_count == 1 ? 0 : devices->cuda_current ? devices->cuda_current(&current) : -1;
    if (code == NO_CONTEXT) array->device = 0;
    else if (code == 0 && current >= 0 && current < devices->cuda_count) array->device = current;
}

static PyObject *finish(PyTypeObject *type, Draft *draft, Owner *owner, uint64_t producer) {
    Block *block = block_new(&draft->array, owner);
    if (!block) return NULL;
    block->producer = producer;
    return (PyObject *)array_make(type, &draft->array, block, NULL);
}

PyObject *draft_finish(PyTypeObject *type, Draft *draft, Owner *owner) { return finish(type, draft, owner, 0); }

/* Whether the core may hear of ordinary memory when it first has to do with it: most buffers are only handed on.
 * Operands are used at once, and the core checks what C cannot place. Once CUDA is in use, its driver is asked. */
static int may_wait(const PyTypeObject *type, hamr_array *array) {
    const hamr_devices *devices = core_functions()->devices;
    if (type == array_type || array->allocator != HAMR_ALLOCATOR_MALLOC || array->device != HAMR_HOST_DEVICE ||
        array->stream || devices->cuda_count || stacks_wanted || number_at(devices->tracing))
        return 0;
    array->flags |= allocator_table[array->allocator].reach * HAMR_HOST_REACHABLE;
    return array_bounds(array) && array->base && array->base <= array->pointer &&
        array->base + array->size > array->pointer;
}

/* Tells the core of foreign memory, now or later. The core checks the dimensions and works out
 * where the memory starts and ends. Takes over owner. */
PyObject *draft_adopt_host(PyTypeObject *type, Draft *draft, Owner *owner) {
    if (core_load() < 0) {
        owner_drop(owner);
        return NULL;
    }
    if (may_wait(type, &draft->array)) return draft_finish(type, draft, owner);
    hamr_error *error = core_functions()->adopt(&draft->array, (uint64_t)(uintptr_t)owner, owner_finished);
    if (error) {
        core_raise(error);
        owner_drop(owner);
        return NULL;
    }
    return draft_finish(type, draft, owner);
}

/* NULL, or what the core says against it. */
static hamr_error *tell_of_device(Draft *draft, Owner *owner, uint64_t producer) {
    const hamr_functions *functions = core_functions();
    uint64_t key = (uint64_t)(uintptr_t)owner;
    if (functions->devices->cuda_count) return functions->adopt_device(&draft->array, key, owner_finished, producer);
    /* The runtime is started first, which takes long. */
    hamr_error *error;
    Py_BEGIN_ALLOW_THREADS
    error = functions->adopt_device(&draft->array, key, owner_finished, producer);
    Py_END_ALLOW_THREADS
    return error;
}

PyObject *draft_adopt_device(PyTypeObject *type, Draft *draft, Owner *owner, uint64_t producer) {
    hamr_error *error = NULL;
    int ready = core_load() == 0;
    if (ready && !(error = tell_of_device(draft, owner, producer))) return draft_finish(type, draft, owner);
    if (error) core_raise(error);
    owner_drop(owner);
    return NULL;
}

/* Host memory that is said to be page-locked, which is the driver's of the allocator to know: what it does
 * not know as one piece of memory, or where there is none, is memory like any other. */
PyObject *draft_adopt_pinned(PyTypeObject *type, Draft *draft, Owner *owner, int allocator) {
    hamr_array plain = draft->array;
    for (int i = 0; i < plain.ndim; i++)
        if (plain.shape[i] == 0) return draft_adopt_host(type, draft, owner); /* no memory to ask for */
    if (core_load() < 0) {
        owner_drop(owner);
        return NULL;
    }
    draft->array.allocator = allocator;
    hamr_error *error = tell_of_device(draft, owner, 0);
    if (!error) return draft_finish(type, draft, owner);
    if (error->kind != HAMR_UNAVAILABLE && error->kind != HAMR_VALUE_ERROR) {
        core_raise(error);
        owner_drop(owner);
        return NULL;
    }
    free(error);
    draft->array = plain;
    return draft_adopt_host(type, draft, owner);
}

/* Fills in where the driver says that the elements are. 0: they are nowhere, or it takes the core to tell. */
static int locate(hamr_array *array) {
    hamr_array found = *array;
    const hamr_functions *functions = core_functions();
    if (!functions || !functions->devices->cuda_attributes) return 0;
    enum { TYPE, ORDINAL, MANAGED, START, SIZE, POOL, COUNT };
    static const int numbers[COUNT] = {[TYPE] = 2, [ORDINAL] = 9, [MANAGED] = 8, [START] = 11, [SIZE] = 12,
                                       [POOL] = 17};
    int asked[COUNT];
    uint64_t answers[COUNT] = {0};
    void *places[COUNT];
    for (int i = 0; i < COUNT; i++) {
        asked[i] = numbers[i];
        places[i] = &answers[i];
    }
    if (!array_bounds(&found) || functions->devices->cuda_attributes(COUNT, asked, places, array->pointer) != 0)
        return 0;
    uint64_t first = found.base, size = found.size;
    uint32_t type = (uint32_t)answers[TYPE];
    int32_t ordinal = (int32_t)(uint32_t)answers[ORDINAL];
    if (type < 1 || type > 2 || first < answers[START] || size > answers[SIZE] ||
        first - answers[START] > answers[SIZE] - size)
        return 0;
    int managed = (uint32_t)answers[MANAGED] != 0, pinned = !managed && type == 1;
    if (!pinned && ordinal < 0) return 0;
    found.allocator = managed ? HAMR_ALLOCATOR_CUDA_UVA : pinned ? HAMR_ALLOCATOR_CUDA_HOST : answers[POOL]
        ? HAMR_ALLOCATOR_CUDA_ASYNC : HAMR_ALLOCATOR_CUDA;
    found.device = pinned ? HAMR_HOST_DEVICE : ordinal;
    found.flags |= allocator_table[found.allocator].reach * HAMR_HOST_REACHABLE;
    *array = found;
    return 1;
}

/* Memory that the core itself has found or mapped: it knows where that is, so that no driver is asked. */
PyObject *draft_adopt_mapped(PyTypeObject *type, Draft *draft, Owner *owner) {
    hamr_array *array = &draft->array;
    if (array->device < 0 || !array_bounds(array)) return draft_adopt_device(type, draft, owner, 0);
    array->flags |= allocator_table[array->allocator].reach * HAMR_HOST_REACHABLE;
    return draft_finish(type, draft, owner);
}

PyObject *adopt_cuda_memory(PyTypeObject *type, Draft *draft, Owner *owner, uint64_t producer) {
    draft->array.allocator = HAMR_ALLOCATOR_ANY;
    draft->array.device = HAMR_HOST_DEVICE;
    /* The core is told of it when it first has to do with it: most is only handed on. But who watches memory is told at
     * once, and the producer's stream may end before. */
    int later = producer <= LEGACY_STREAM && !draft->array.stream && !stacks_wanted;
    if (later && locate(&draft->array)) return finish(type, draft, owner, producer);
    return draft_adopt_device(type, draft, owner, producer);
}
