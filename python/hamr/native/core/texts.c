#include "core/texts.h"

#include <string.h>

#include "base/containers.h"
#include "base/python.h"

PyObject *core_text(const char *text) {
    if (!text) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *core_texts(const char *const *texts) {
    Py_ssize_t n = 0;
    while (texts && texts[n]) n++;
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++)
        tuple_put(&tuple, i, core_text(texts[i]));
    return tuple;
}

/* The core's texts end with a zero: one inside would cut the rest off. */
const char *text_for_core(PyObject *value) {
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(value, &size);
    if (!text || strlen(text) == (size_t)size) return text;
    return PyErr_Format(PyExc_ValueError, "embedded null character"), NULL;
}
