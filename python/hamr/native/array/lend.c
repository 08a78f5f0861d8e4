#include "array/lend.h"

#include <stdint.h>
#include <stdlib.h>

#include "array/access.h"
#include "array/array.h"
#include "array/in_turn.h"
#include "array/result.h"
#include "array/turn.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/patience.h"
#include "core/relief.h"
#include "memory/stream_life.h"

typedef struct {
    int32_t space, device, mode;
    Array *source; /* what the buffer was when the access began */
    uint64_t access;
    hamr_error *error;
    Result result;
} Opening;

/* With the turn, and without Python code: a change of the buffer is over, or finds the access. */
static Outcome run(Array *self, void *state) {
    Opening *opening = state;
    if (self->closed) return FREED;
    const hamr_functions *functions = core_functions();
    if (!functions) return NO_LIBRARY;
    int held = array_hold(opening->source, self);
    if (held) return held > 0 ? UNKNOWN_MEMORY : FAILED;
    result_start(&opening->result, opening->source);
    if (self->cached) opening->source->array.flags |= HAMR_KEPT;
    opening->source->array.flags |= patience_flags();
    Py_BEGIN_ALLOW_THREADS
    opening->error = functions->open_access(&opening->source->array, opening->space, opening->device, opening->mode,
                                            &opening->result.draft.array, &opening->access);
    Py_END_ALLOW_THREADS
    Turn *turn = self->turn;
    turn_let_read(turn, 1);
    opening->error = patience_outcome(opening->error);
    turn_let_read(turn, 0);
    opening->source->array.flags &= ~(HAMR_KEPT | HAMR_PROMPT);
    return opening->error ? FAILED : DONE;
}

static hamr_error *end(Array *source, Array *handle, uint64_t access, int commit) {
    int over = stream_life_over(source->life, source->array.stream);
    hamr_error *error;
    if (commit) source->array.flags |= patience_flags();
    Py_BEGIN_ALLOW_THREADS
    error = core_functions()->end_access(access, commit, over, &source->array, handle ? &handle->array : NULL);
    Py_END_ALLOW_THREADS
    error = patience_outcome(error);
    source->array.flags &= ~HAMR_PROMPT;
    return error;
}

/* open_access(array, space, device, mode) -> (handle, opened): opened is for end_access. */
static PyObject *open_access(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *object;
    Opening opening = {.access = 0};
    if (!PyArg_ParseTuple(arguments, "O!iii", array_type, &object, &opening.space, &opening.device, &opening.mode))
        return NULL;
    OPEN(object);
    if (array_usable((Array *)object) < 0) return NULL;
    Outcome outcome;
    Relief relief = relief_begin();
    do {
        Py_XDECREF((PyObject *)opening.source);
        opening.error = NULL;
        opening.source = array_new(array_type);
        outcome = opening.source ? in_turn((Array *)object, run, NULL, &opening) : FAILED;
    } while (opening.error && core_relieves(&relief, &opening.error, NULL));
    relief_end(&relief);
    if (opening.error && opening.error->kind == HAMR_INTERRUPTED && opening.access &&
        opening.result.generation == core_generation) {
        /* The access has been opened in the last moment, and nobody is told of it. */
        free(end(opening.source, NULL, opening.access, 0));
        result_end(&opening.result);
    }
    if (outcome == FREED) array_freed((Array *)object);
    else if (opening.error) core_raise(opening.error);
    PyObject *handle = NULL, *both = NULL;
    if (outcome == DONE) {
        uint64_t generation = opening.result.generation;
        handle = access_handle(&opening.result, opening.source, opening.space);
        if (handle)
            both = Py_BuildValue("(N(OKK))", handle, opening.source, (unsigned long long)opening.access,
                                 (unsigned long long)generation);
        if (!both && generation == core_generation) {
            Raised raised = raised_take();
            free(end(opening.source, NULL, opening.access, 0));
            raised_restore(raised);
        }
        result_end(&opening.result);
    }
    Py_XDECREF((PyObject *)opening.source);
    return both;
}

/* end_access(handle, opened, commit): in a forked child, which has no device and whose parent
 * writes back for itself, there is nothing to end. */
static PyObject *end_access(PyObject *Py_UNUSED(module), PyObject *arguments) {
    Array *handle, *source;
    unsigned long long access, generation;
    int commit;
    if (!PyArg_ParseTuple(arguments, "O!(O!KK)p", array_type, &handle, array_type, &source, &access, &generation,
                          &commit))
        return NULL;
    if (generation != core_generation) {
        if (commit && handle->temporary && !(handle->array.flags & HAMR_READ_ONLY)) return core_forked(), NULL;
        Py_RETURN_NONE;
    }
    hamr_error *error;
    Relief relief = relief_begin();
    do {
        error = end(source, handle, access, commit);
    } while (error && core_relieves(&relief, &error, NULL));
    relief_end(&relief);
    if (error && commit && error->kind == HAMR_OUT_OF_MEMORY && generation == core_generation)
        free(end(source, handle, access, 0));
    if (error) return core_failed(error);
    Py_RETURN_NONE;
}

PyMethodDef lend_functions[] = {
    {"open_access", open_access, METH_VARARGS,
     "open_access(array, space, device, mode) -> (handle, opened): elements for code that reads (0), writes (1) or "
     "both (2)."},
    {"end_access", end_access, METH_VARARGS,
     "end_access(handle, opened, commit): the elements are the array's again, with commit as they were written."},
    {NULL, NULL, 0, NULL},
};
