#include "core/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/python.h"
#include "core/errors.h"

static PyObject *value_of(const hamr_cell *cell) {
    switch (cell->kind) {
    case HAMR_CELL_TRUTH: return PyBool_FromLong(cell->number != 0);
    case HAMR_CELL_NUMBER: return PyLong_FromLongLong(cell->number);
    case HAMR_CELL_UNSIGNED: return PyLong_FromUnsignedLongLong((unsigned long long)cell->number);
    case HAMR_CELL_TEXT: {
        const char *text = cell->text ? cell->text : "";
        return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    }
    default: return Py_NewRef(Py_None);
    }
}

static PyObject *tuple_of(const hamr_row *row) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)row->count);
    for (Py_ssize_t i = 0; tuple && i < (Py_ssize_t)row->count; i++) {
        PyObject *value = value_of(&row->cells[i]);
        if (!value) Py_CLEAR(tuple);
        else PyTuple_SetItem(tuple, i, value);
    }
    return tuple;
}

PyObject *rows_take(hamr_error *error, hamr_rows *rows) {
    if (error) return core_failed(error);
    PyObject *list = PyList_New((Py_ssize_t)rows->count);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)rows->count; i++) {
        PyObject *tuple = tuple_of(&rows->rows[i]);
        if (!tuple) Py_CLEAR(list);
        else PyList_SetItem(list, i, tuple);
    }
    free(rows); /* where a finaliser forks, the child has no core to ask */
    return list;
}
