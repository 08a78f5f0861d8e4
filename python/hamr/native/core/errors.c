#include "core/errors.h"

#include <stdlib.h>
#include <string.h>

#include "base/python.h"

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

static PyObject *text_of(const char *text) { return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"); }

/* Takes over value. */
static int give(PyObject *exception, const char *name, PyObject *value) {
    int given = value ? PyObject_SetAttrString(exception, name, value) : -1;
    Py_XDECREF(value);
    return given;
}

static PyObject *tuple_of(const char *const *texts) {
    Py_ssize_t n = 0;
    while (texts && texts[n]) n++;
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        PyObject *text = text_of(texts[i]);
        if (!text || PyTuple_SetItem(tuple, i, text) < 0) Py_CLEAR(tuple);
    }
    return tuple;
}

static int give_attributes(PyObject *exception, const hamr_error *error) {
    const char *source = error->source ? error->source : "", *name = error->name ? error->name : "";
    switch (error->kind) {
    case HAMR_OUT_OF_MEMORY:
        return give(exception, "size", PyLong_FromLongLong(error->size));
    case HAMR_UNAVAILABLE:
        return give(exception, "backend", text_of(source)) < 0 ? -1 : give(exception, "tried", tuple_of(error->tried));
    case HAMR_DEVICE_ERROR:
        if (give(exception, "api", text_of(source)) < 0 || give(exception, "name", text_of(name)) < 0) return -1;
        return give(exception, "code", PyLong_FromLong(error->code));
    case HAMR_INTERNAL_ERROR:
        return give(exception, "stack", text_of(error->stack ? error->stack : ""));
    default:
        return 0;
    }
}

static void raise_error(const hamr_error *error) {
    PyObject *class = class_of(error->kind), *message = text_of(error->message);
    PyObject *exception = message ? PyObject_CallFunctionObjArgs(class, message, NULL) : NULL;
    if (exception && (class == PyExc_RuntimeError || give_attributes(exception, error) == 0)) PyErr_SetObject(class, exception);
    Py_XDECREF(message);
    Py_XDECREF(exception);
}

int core_raise(hamr_error *error) {
    raise_error(error);
    free(error);
    return -1;
}

PyObject *core_freed(void) {
    raise_error(&(hamr_error){.kind = HAMR_FREED, .message = "the buffer was closed"});
    return NULL;
}

int core_forked(void) {
    raise_error(&(hamr_error){
        .kind = HAMR_FORKED,
        .message = "this device buffer was made before fork(): the driver does not work in a forked child; "
                   "start processes with multiprocessing's spawn or forkserver method, or copy the buffer to the host before the fork"});
    return -1;
}
