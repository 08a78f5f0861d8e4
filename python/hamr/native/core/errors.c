#include "core/errors.h"

#include <stdlib.h>

#include "base/python.h"
#include "core/texts.h"

static PyObject *exceptions; /* by hamr_error_kind - 1; NULL until Python has told them */

int core_raise_as(PyObject *classes) {
    int fit = PyTuple_Check(classes) && PyTuple_Size(classes) == HAMR_ERROR_KIND_COUNT - 1;
    for (Py_ssize_t i = 0; fit && i < HAMR_ERROR_KIND_COUNT - 1; i++) fit = PyExceptionClass_Check(PyTuple_GetItem(classes, i));
    if (!fit) {
        PyErr_Format(PyExc_TypeError, "the exceptions are %R: expected a tuple of %d classes", classes, HAMR_ERROR_KIND_COUNT - 1);
        return -1;
    }
    PyObject *old = exceptions;
    exceptions = Py_NewRef(classes);
    Py_XDECREF(old);
    return 0;
}

static PyObject *class_of(int32_t kind) {
    return exceptions && kind > 0 && kind < HAMR_ERROR_KIND_COUNT ? PyTuple_GetItem(exceptions, kind - 1) : PyExc_RuntimeError;
}

/* Takes over value. */
static int give(PyObject *exception, const char *name, PyObject *value) {
    int given = value ? PyObject_SetAttrString(exception, name, value) : -1;
    Py_XDECREF(value);
    return given;
}

static int give_attributes(PyObject *exception, const hamr_error *error) {
    const char *source = error->source ? error->source : "", *name = error->name ? error->name : "";
    switch (error->kind) {
    case HAMR_OUT_OF_MEMORY:
        return give(exception, "size", PyLong_FromLongLong(error->size));
    case HAMR_UNAVAILABLE:
        return give(exception, "backend", core_text(source)) < 0 ? -1 : give(exception, "tried", core_texts(error->tried));
    case HAMR_DEVICE_ERROR:
        if (give(exception, "api", core_text(source)) < 0 || give(exception, "name", core_text(name)) < 0) return -1;
        return give(exception, "code", PyLong_FromLong(error->code));
    case HAMR_INTERNAL_ERROR:
        return give(exception, "stack", core_text(error->stack ? error->stack : ""));
    default:
        return 0;
    }
}

static void raise_error(const hamr_error *error) {
    PyObject *class = class_of(error->kind), *message = core_text(error->message ? error->message : "");
    PyObject *exception = message ? PyObject_CallFunctionObjArgs(class, message, NULL) : NULL;
    if (exception && (class == PyExc_RuntimeError || give_attributes(exception, error) == 0)) PyErr_SetObject(class, exception);
    Py_XDECREF(message);
    Py_XDECREF(exception);
}

/* An exception that was raised already. */
typedef struct {
    hamr_error error;
    PyObject *type, *value, *traceback;
} Interruption;

void core_report(hamr_error *error, PyObject *where) {
    PyObject *type, *value, *traceback;
    if (!error) return;
    PyErr_Fetch(&type, &value, &traceback);
    core_raise(error);
    PyErr_WriteUnraisable(where);
    PyErr_Restore(type, value, traceback);
}

hamr_error *core_interruption(void) {
    Interruption *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->error = (hamr_error){.kind = HAMR_INTERRUPTED, .message = "interrupted"};
    PyErr_Fetch(&made->type, &made->value, &made->traceback);
    return &made->error;
}

int core_raise(hamr_error *error) {
    if (error->kind == HAMR_INTERRUPTED) {
        Interruption *made = (Interruption *)error;
        PyErr_Restore(made->type, made->value, made->traceback);
        free(made);
        return -1;
    }
    raise_error(error);
    free(error);
    return -1;
}

PyObject *core_freed(const char *message) {
    raise_error(&(hamr_error){.kind = HAMR_FREED, .message = message});
    return NULL;
}

int core_forked(void) {
    raise_error(&(hamr_error){
        .kind = HAMR_FORKED,
        .message = "this device buffer was made before fork(): the driver does not work in a forked child; "
                   "start processes with multiprocessing's spawn or forkserver method, or copy the buffer to the host before the fork"});
    return -1;
}
