/* Many arrays' elements at once.
 *
 * The elements are written by way of snapshots, as those of views are: others may change
 * the buffers meanwhile, and the memory that they had stays until the end. */
#include "array/many.h"

#include "array/array.h"
#include "array/snapshot.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/patience.h"

/* What is given to the core, pinned. */
typedef struct {
    Py_ssize_t count;
    Array **pinned;      /* count destinations and as many sources */
    hamr_array **arrays; /* theirs */
    Array *to, *from;    /* indices, or NULL */
} Pairs;

static int pin(Pairs *pairs, Py_ssize_t at, PyObject *list, Py_ssize_t i) {
    PyObject *given = PyList_GetItem(list, i);
    if (!given || !is_array(given)) return -1;
    Py_INCREF(given); /* pinning may run code that takes it off the list */
    Array *pinned = array_pinned((Array *)given);
    Py_DECREF(given);
    if (!pinned) return -1;
    pairs->pinned[at] = pinned;
    pairs->arrays[at] = &pinned->array;
    return 0;
}

static int pin_all(Pairs *pairs, PyObject *destinations, PyObject *sources) {
    pairs->count = PyList_Size(destinations);
    if (pairs->count < 0 || PyList_Size(sources) != pairs->count) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the lists differ in length");
        return -1;
    }
    pairs->pinned = PyMem_Calloc((size_t)pairs->count * 2 + 1, sizeof *pairs->pinned);
    pairs->arrays = PyMem_Calloc((size_t)pairs->count * 2 + 1, sizeof *pairs->arrays);
    if (!pairs->pinned || !pairs->arrays) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < pairs->count; i++)
        if (pin(pairs, i, destinations, i) < 0 || pin(pairs, pairs->count + i, sources, i) < 0) return -1;
    return 0;
}

static void unpin(Pairs *pairs) {
    Raised raised = raised_take();
    for (Py_ssize_t i = 0; pairs->pinned && i < 2 * pairs->count; i++) Py_XDECREF((PyObject *)pairs->pinned[i]);
    PyMem_Free(pairs->pinned);
    PyMem_Free(pairs->arrays);
    Py_XDECREF((PyObject *)pairs->to);
    Py_XDECREF((PyObject *)pairs->from);
    raised_restore(raised);
}

/* An index, pinned, or NULL for None. */
static int pin_index(PyObject *given, Array **pinned) {
    if (given == Py_None) return 0;
    return is_array(given) && (*pinned = array_pinned((Array *)given)) ? 0 : -1;
}

/* copy_many(destinations, sources, destination_index, source_index, transfer) */
static PyObject *copy_many(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Pairs pairs = {0};
    int32_t transfer;
    if (arity(n, 5, "copy_many") < 0 || read_int32(arguments[4], "transfer", &transfer) < 0) return NULL;
    hamr_error *error = NULL;
    int done = pin_all(&pairs, arguments[0], arguments[1]) == 0 && pin_index(arguments[2], &pairs.to) == 0 &&
               pin_index(arguments[3], &pairs.from) == 0 && ((pairs.count == 0 && !pairs.to) || core_load() == 0);
    const hamr_functions *functions = done ? core_functions() : NULL;
    if (functions && (pairs.count > 0 || pairs.to)) {
        PATIENT_CALL(error, pairs.count ? pairs.arrays[0] : &pairs.to->array,
                     functions->copy_many(pairs.count, pairs.arrays, pairs.arrays + pairs.count,
                                          pairs.to ? &pairs.to->array : NULL, pairs.from ? &pairs.from->array : NULL,
                                          transfer));
    }
    if (error) core_raise(error);
    unpin(&pairs);
    if (!done || error) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef many_functions[] = {
    {"copy_many", FAST(copy_many), METH_FASTCALL,
     "copy_many(destinations, sources, destination_index, source_index, transfer): set the elements of each array of a "
     "list from those of another, broadcast, or with indices that are not None the blocks that these name; transfer -1 "
     "is each array's own."},
    {NULL, NULL, 0, NULL},
};
