#include "core/relief.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/python.h"
#include "core/core.h"
#include "core/stacks.h"

/* What relieve() answers, as _base/out_of_memory.py numbers them. */
enum { GIVE_UP, AGAIN, OR_PAGEABLE, COLLECTED };
/* Relief.asked: the pools and callbacks, then the garbage collector, then pageable memory have had their turn. */
enum { POOLS_ASKED = 1, GARBAGE_COLLECTED, ALL_ASKED };

uint64_t relief_helped;

/* relieve(device, bytes, allocator, asked, limited) -> (answer, what was tried, who has the memory) */
static PyObject *relieve;

void relief_free(Relief *relief) {
    free(relief->tried);
    free(relief->held);
    relief->tried = relief->held = NULL;
}

static void keep(char **text, const char *given) {
    if (!*given) return;
    free(*text);
    *text = strdup(given);
}

static int ask(Relief *relief, const hamr_error *error) {
    Raised raised = raised_take();
    PyObject *both = relieve ? PyObject_CallFunction(relieve, "iLsii", (int)error->code, (long long)error->size,
                                                     error->source ? error->source : "", relief->asked, error->name &&
                                                     *error->name) : NULL;
    int answer = GIVE_UP;
    const char *tried = NULL, *held = NULL;
    if (both && PyArg_ParseTuple(both, "iss", &answer, &tried, &held)) {
        keep(&relief->tried, tried);
        keep(&relief->held, held);
    }
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(relieve);
        answer = GIVE_UP;
    }
    Py_XDECREF(both);
    raised_restore(raised);
    return answer;
}

static size_t length(const char *text) { return text ? strlen(text) : 0; }

/* The same error, with who has the memory and what was tried on lines of their own. */
static hamr_error *told(hamr_error *error, const Relief *relief) {
    static const char tried[] = "\ntried: ";
    size_t room = length(error->message) + length(relief->held) + length(relief->tried) + sizeof tried + 2,
        source = length(error->source);
    char *block = malloc(sizeof *error + room + source + 1);
    if (!block) return error;
    hamr_error *longer = (hamr_error *)block;
    char *text = block + sizeof *longer, *name = text + room;
    *longer = (hamr_error){.kind = error->kind, .code = error->code, .size = error->size, .message = text,
                           .source = name};
    int held = relief->held != NULL, asked = relief->tried != NULL;
    snprintf(text, room, "%s%s%s%s%s", error->message, held ? "\n" : "", held ? relief->held : "", asked ? tried : "",
             asked ? relief->tried : "");
    memcpy(name, error->source ? error->source : "", source + 1);
    free(error);
    return longer;
}

int core_relieves(Relief *relief, hamr_error **error, uint32_t *flags) {
    uint64_t generation = core_generation;
    int full = *error && (*error)->kind == HAMR_OUT_OF_MEMORY;
    uint64_t others = __atomic_load_n(&relief_helped, __ATOMIC_RELAXED);
    int answer;
    if (full && relief->helped != others) {
        relief->helped = others; /* what others were given back meanwhile may be enough */
        answer = AGAIN;
    } else {
        answer = full && relief->asked < ALL_ASKED ? ask(relief, *error) : GIVE_UP;
        if (answer == OR_PAGEABLE && !flags) answer = GIVE_UP;
        relief->asked = answer == OR_PAGEABLE ? ALL_ASKED : answer == COLLECTED ? GARBAGE_COLLECTED : POOLS_ASKED;
        if (answer == AGAIN || answer == COLLECTED)
            relief->helped = __atomic_add_fetch(&relief_helped, 1, __ATOMIC_RELAXED);
    }
    if (answer != GIVE_UP && generation == core_generation) {
        free(*error);
        *error = NULL;
        if (answer == OR_PAGEABLE) *flags |= HAMR_OR_PAGEABLE;
        stacks_note(); /* Python code was run meanwhile */
        return 1;
    }
    if (full && (relief->tried || relief->held)) *error = told(*error, relief);
    relief_end(relief);
    return 0;
}

static PyObject *set_relief(PyObject *Py_UNUSED(module), PyObject *function) {
    replace_reference(&relieve, Py_NewRef(function));
    Py_RETURN_NONE;
}

PyMethodDef relief_methods[] = {
    {"set_relief", set_relief, METH_O,
     "set_relief(relieve): relieve(device, bytes, allocator, asked, limited) -> (what is to be done, what was tried, "
     "who has the memory): called when memory has run out."},
    {NULL, NULL, 0, NULL},
};
