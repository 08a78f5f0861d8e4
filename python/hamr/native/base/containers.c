#include "base/containers.h"

#include "base/python.h"

static void put(PyObject **container, PyObject *item, int failed) {
    if (failed) Py_CLEAR(*container);
    Py_XDECREF(item);
}

void list_put(PyObject **list, PyObject *item) { put(list, item, !item || PyList_Append(*list, item) < 0); }

void tuple_put(PyObject **tuple, Py_ssize_t at, PyObject *item) {
    put(tuple, NULL, !item || PyTuple_SetItem(*tuple, at, item) < 0);
}

void dict_put(PyObject **dictionary, const char *key, PyObject *item) {
    put(dictionary, item, !item || PyDict_SetItemString(*dictionary, key, item) < 0);
}

void set_put(PyObject **set, PyObject *item) { put(set, item, !item || PySet_Add(*set, item) < 0); }

int intern_names(PyObject **names, const char *const *texts, int count) {
    for (int i = 0; i < count; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(texts[i]))) return -1;
    return 0;
}
