#include "surface/c_interface.h"

#include "array/array.h"
#include "array/turn.h"
#include "base/exclusive.h"
#include "base/python.h"
#include "core/core.h"
#include "hamr/python.h"
#include "memory/block.h"
#include "memory/exchange.h"
#include "memory/owner.h"
#include "memory/stream_life.h"
#include "plain/layout.h"
#include "protocols/adopt_known.h"
#include "protocols/buffer_import.h"

static PyObject *buffer_type, *buffer_function; /* hamr.Buffer and hamr.buffer, once they were needed */

/* What the package has by a name, borrowed; NULL, with an exception. */
static PyObject *public_object(PyObject **known, const char *name) {
    if (*known) return *known;
    PyObject *module = PyImport_ImportModule("hamr");
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    if (*known) Py_XDECREF(found); /* meanwhile, by another thread */
    else *known = found;
    return *known;
}

/* A program may have been linked with another copy of the library, whose buffers mean nothing here. */
static const hamr_exchange *exchange_with(const hamr_table *table) {
    const hamr_exchange *exchange = exchange_get();
    if (!exchange || exchange->table() == table) return exchange;
    exchange_of_another();
    return NULL;
}

/* All objects come first: to make them may run finalisers, which may do anything. */
static PyObject *to_python(const hamr_table *table, const hamr_buffer *buffer) {
    const hamr_exchange *exchange = exchange_with(table);
    PyObject *type = exchange && core_load() == 0 ? public_object(&buffer_type, "Buffer") : NULL;
    Array *self = type ? array_new((PyTypeObject *)type) : NULL;
    Block *block = self ? block_spare() : NULL;
    hamr_array array;
    struct Share *share;
    int32_t foreign;
    if (block && exchange->lend(buffer, &array, &share, &foreign)) {
        exchange_raise();
        Py_CLEAR(block);
    }
    if (!block) {
        Py_XDECREF((PyObject *)self);
        return NULL;
    }
    if (share) {
        block_fill(block, &array, NULL, core_generation);
        block->share = share;
        block->reused_in_order = (char)foreign;
        block->several_streams = 1;
    } else {
        Py_CLEAR(block);
    }
    if (array_store(self, &array, block) < 0) Py_CLEAR(self);
    return (PyObject *)self;
}

/* The buffer itself, or one of what an object shares. */
static Array *buffer_of(PyObject *object) {
    if (PyObject_TypeCheck(object, array_type) && !((Array *)object)->fixed) return (Array *)Py_NewRef(object);
    PyObject *function = public_object(&buffer_function, "buffer");
    PyObject *made = function ? PyObject_CallFunctionObjArgs(function, object, NULL) : NULL;
    if (made && !is_array(made)) Py_CLEAR(made);
    return (Array *)made;
}

/* With the array's memory, which Python code may change meanwhile, shared; 0, or -1 with an exception. */
static int share_memory(Array *self) {
    for (;;) {
        if (self->turn && turn_wait(&self->turn) < 0) return -1;
        if (self->closed) return array_freed(self), -1;
        Block *block = self->block;
        if (!block || (block->share && block->memory.generation == core_generation)) return 0;
        Py_INCREF((PyObject *)block);
        int shared = block_share(block);
        Py_DECREF((PyObject *)block);
        if (shared < 0) return -1;
    }
}

/* The stream that C is told, which Python's objects keep, lasts as long as the memory. */
static int keep_stream(const hamr_exchange *exchange, const Array *self) {
    Block *block = self->block;
    if (!block || !self->life || block->lent_life == self->life) return 0;
    Owner *owner = owner_new(self->life, NULL);
    if (!owner) return -1;
    if (exchange->keep(block->share, (uint64_t)(uintptr_t)owner, owner_finished)) {
        owner_drop(owner);
        return exchange_raise();
    }
    block->lent_life = self->life;
    return 0;
}

/* Memory of a type that the buffer protocol serves, without an object of Python's between: 1. 0: it takes
 * hamr.buffer(); -1, with an exception. */
static int take_exported(const hamr_exchange *exchange, PyObject *object, hamr_buffer **made) {
    Draft draft;
    Py_buffer *view;
    hamr_array *array = &draft.array;
    if (!is_plain_exporter(object)) return 0;
    draft_start(&draft);
    int read = buffer_read(object, &draft, &view);
    if (read < 1) return read;
    Owner *owner = array_bounds(array) ? owner_new(NULL, view) : NULL;
    if (!owner) { /* also where there are no elements */
        PyBuffer_Release(view);
        PyMem_Free(view);
        return PyErr_Occurred() ? -1 : 0;
    }
    array->transfer = HAMR_SYNC_HOST;
    if (exchange->take_foreign(array, (uint64_t)(uintptr_t)owner, owner_finished, made)) return exchange_raise();
    return 1;
}

static int from_python(const hamr_table *table, PyObject *object, hamr_buffer **made) {
    const hamr_exchange *exchange = exchange_with(table);
    int exported = exchange ? take_exported(exchange, object, made) : -1;
    if (exported) return exported < 0 ? -1 : 0;
    Array *self = buffer_of(object);
    int taken = self ? share_memory(self) : -1;
    if (taken == 0) taken = keep_stream(exchange, self);
    if (taken == 0) {
        hamr_array array = self->array;
        if (stream_life_over(self->life, array.stream)) array.stream = 0;
        if (exchange->take(&array, self->block ? self->block->share : NULL, made)) taken = exchange_raise();
    }
    Py_XDECREF((PyObject *)self);
    return taken;
}

static PyObject *to_python_in_section(const hamr_table *table, const hamr_buffer *buffer) {
    PyObject *made;
    EXCLUSIVE_BEGIN
    made = to_python(table, buffer);
    EXCLUSIVE_END
    return made;
}

static int from_python_in_section(const hamr_table *table, PyObject *object, hamr_buffer **made) {
    int taken;
    EXCLUSIVE_BEGIN
    taken = from_python(table, object, made);
    EXCLUSIVE_END
    return taken;
}

static void raise(const hamr_failure *failure) { exchange_raise_as(failure); }

static const hamr_python_api api = {
    .version = HAMR_PYTHON_API_VERSION,
    .size = sizeof api,
    .to_python = to_python_in_section,
    .from_python = from_python_in_section,
    .raise = raise,
};

int c_interface_setup(PyObject *module) {
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&api, "hamr._C_API", NULL);
    int added = PyModule_AddObjectRef(module, "_C_API", capsule);
    Py_XDECREF(capsule);
    return added;
}
