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
