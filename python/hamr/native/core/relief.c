#include "core/relief.h"

#include <stdlib.h>
#include <string.h>

#include "base/python.h"
#include "core/core.h"

enum { GIVE_UP, AGAIN, OR_PAGEABLE }; /* what relieve() answers, as _base/out_of_memory.py numbers them */

static PyObject *relieve; /* relieve(device, bytes, allocator, asked, limited) -> (answer, what was tried) */

static int ask(Relief *relief, const hamr_error *error) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *both = relieve ? PyObject_CallFunction(relieve, "iLsii", (int)error->code, (long long)error->size, error->source ? error->source : "", relief->asked, error->name && *error->name) : NULL;
    int answer = GIVE_UP;
    const char *tried = NULL;
    if (both && PyArg_ParseTuple(both, "is", &answer, &tried) && *tried) {
        free(relief->tried);
        relief->tried = strdup(tried);
    }
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(relieve);
        answer = GIVE_UP;
    }
    Py_XDECREF(both);
    PyErr_Restore(type, value, traceback);
    return answer;
}

/* The same error, with what was tried. */
static hamr_error *told(hamr_error *error, const char *tried) {
    static const char between[] = "; tried: ";
    size_t message = strlen(error->message), source = error->source ? strlen(error->source) : 0;
    char *block = malloc(sizeof *error + message + sizeof between + strlen(tried) + source + 1);
    if (!block) return error;
    hamr_error *longer = (hamr_error *)block;
    char *text = block + sizeof *longer, *name = text + message + sizeof between + strlen(tried);
    *longer = (hamr_error){.kind = error->kind, .code = error->code, .size = error->size, .message = text, .source = name};
    memcpy(text, error->message, message);
    memcpy(text + message, between, sizeof between - 1);
    strcpy(text + message + sizeof between - 1, tried);
    memcpy(name, error->source ? error->source : "", source + 1);
    free(error);
    return longer;
}

int core_relieves(Relief *relief, hamr_error **error, uint32_t *flags) {
    uint64_t generation = core_generation;
    int full = *error && (*error)->kind == HAMR_OUT_OF_MEMORY;
    int answer = full && relief->asked < 2 ? ask(relief, *error) : GIVE_UP;
    if (answer == OR_PAGEABLE && !flags) answer = GIVE_UP;
    relief->asked = answer == OR_PAGEABLE ? 2 : relief->asked + 1;
    if (answer != GIVE_UP && generation == core_generation) {
        free(*error);
        *error = NULL;
        if (answer == OR_PAGEABLE) *flags |= HAMR_OR_PAGEABLE;
        return 1;
    }
    if (full && relief->tried) *error = told(*error, relief->tried);
    free(relief->tried);
    relief->tried = NULL;
    return 0;
}

static PyObject *set_relief(PyObject *module, PyObject *function) {
    (void)module;
    PyObject *old = relieve;
    relieve = Py_NewRef(function);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

PyMethodDef relief_methods[] = {
    {"set_relief", set_relief, METH_O,
     "set_relief(relieve): relieve(device, bytes, allocator, asked, limited) -> (what is to be done, what was tried): called when memory has run out."},
    {NULL, NULL, 0, NULL},
};
