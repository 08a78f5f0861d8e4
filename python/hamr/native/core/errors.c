#include "core/errors.h"

#include <stdlib.h>
#include <string.h>

#include "base/python.h"

static PyObject *raiser;

void core_raise_by(PyObject *make_error) {
    PyObject *old = raiser;
    raiser = Py_NewRef(make_error);
    Py_XDECREF(old);
}

static int raise_text(PyObject *text) {
    if (!text) return -1;
    if (!raiser) {
        PyErr_SetObject(PyExc_RuntimeError, text);
    } else {
        PyObject *error = PyObject_CallFunctionObjArgs(raiser, text, NULL);
        if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(error);
    }
    Py_DECREF(text);
    return -1;
}

int core_raise(char *message) {
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    free(message);
    return raise_text(text);
}

void core_translate(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type != PyExc_RuntimeError) {
        PyErr_Restore(type, value, traceback);
        return;
    }
    raise_text(PyObject_Str(value));
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

PyObject *core_freed(void) {
    raise_text(PyUnicode_FromString("hamr\x1f" "FreedBuffer\x1f{}\x1f" "the buffer was closed"));
    return NULL;
}

int core_forked(void) {
    return raise_text(PyUnicode_FromString(
        "hamr\x1f" "ForkError\x1f{}\x1f"
        "this device buffer was made before fork(): the driver does not work in a forked child; "
        "start processes with multiprocessing's spawn or forkserver method, or copy the buffer to the host before the fork"));
}

int core_is_kind(const char *message, const char *kind) {
    const char *prefix = "hamr\x1f";
    size_t n = strlen(prefix), length = strlen(kind);
    return strncmp(message, prefix, n) == 0 && strncmp(message + n, kind, length) == 0 && message[n + length] == '\x1f';
}
