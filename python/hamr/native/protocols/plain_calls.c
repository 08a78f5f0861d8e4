/* What is called most, with plain arguments, in one call: sharing an object, filling, writing. What
 * is not plain, and what is wrong, is left to Python. */
#include "protocols/plain_calls.h"

#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "array/change.h"
#include "array/construct.h"
#include "array/copy.h"
#include "array/create.h"
#include "base/exclusive.h"
#include "base/python.h"
#include "protocols/adopt_known.h"

static PyObject *sharer; /* hamr.buffer, as Python has it */

static PyObject *share_in_python(PyObject *const *arguments, Py_ssize_t n, PyObject *names) {
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    PyObject *given = PyTuple_New(n), *more = named ? PyDict_New() : NULL, *shared = NULL;
    if (!given || (named && !more)) goto end;
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SetItem(given, i, Py_NewRef(arguments[i]));
    for (Py_ssize_t i = 0; i < named; i++)
        if (PyDict_SetItem(more, PyTuple_GetItem(names, i), arguments[n + i]) < 0) goto end;
    shared = PyObject_Call(sharer, given, more);
end:
    Py_XDECREF(given);
    Py_XDECREF(more);
    return shared;
}

static PyObject *share(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n, PyObject *names) {
    if (n == 1 && !names && PyList_Size(blocks_entered) == 0) {
        PyTypeObject *type = copy_type();
        PyObject *shared = type ? adopt_plain(type, arguments[0]) : NULL;
        if (shared != Py_None) return shared;
        Py_DECREF(shared);
        shared = adopt_asking(type, arguments[0]);
        if (shared != Py_None) return shared;
        Py_DECREF(shared);
    }
    return share_in_python(arguments, n, names);
}

/* sharing(function, signature, module): a function that does the same, and says of itself what function does. */
static PyObject *sharing(PyObject *Py_UNUSED(module), PyObject *arguments) {
    static PyMethodDef definition = {NULL, FAST(share), METH_FASTCALL | METH_KEYWORDS, NULL};
    PyObject *function, *name;
    const char *signature;
    if (!PyArg_ParseTuple(arguments, "OsU", &function, &signature, &name)) return NULL;
    PyObject *text = PyObject_GetAttrString(function, "__doc__"), *doc = NULL;
    /* python -OO has no docstrings. */
    if (text) doc = PyUnicode_FromFormat("buffer%s\n--\n\n%V", signature, text == Py_None ? NULL : text, "");
    Py_ssize_t size = 0;
    const char *utf8 = doc ? PyUnicode_AsUTF8AndSize(doc, &size) : NULL;
    char *kept = utf8 ? malloc((size_t)size + 1) : NULL; /* for as long as there are functions of it */
    if (kept) memcpy(kept, utf8, (size_t)size + 1);
    Py_XDECREF(text);
    Py_XDECREF(doc);
    if (!kept) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    replace_reference(&sharer, Py_NewRef(function));
    definition.ml_name = "buffer";
    definition.ml_doc = kept;
    return exclusive_function(&definition, NULL, name);
}

/* A number as an array; None for anything else, and for what no element of 64 bits holds. */
static PyObject *number(PyObject *value) {
    if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value) && !PyBool_Check(value) && !PyComplex_CheckExact(value))
        Py_RETURN_NONE;
    PyObject *array = array_of_number(value);
    if (array || !PyErr_ExceptionMatches(PyExc_ValueError)) return array;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* What can be written to elements: hamr's own arrays, and what is known to share. */
static PyObject *elements_of(PyObject *value) {
    if (PyObject_TypeCheck(value, array_type)) return Py_NewRef(value);
    PyObject *array = adopt_plain(array_type, value);
    if (array || !PyErr_ExceptionMatches(PyExc_TypeError)) return array;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* Takes over value, which may be None: then 0. -1 is an error. */
static int changed(PyObject *object, PyObject *value, PyObject *(*change)(PyObject *, Array *)) {
    int plain = value && value != Py_None;
    PyObject *nothing = plain ? change(object, (Array *)value) : NULL;
    int failed = !value || (plain && !nothing);
    Py_XDECREF(value);
    Py_XDECREF(nothing);
    return failed ? -1 : plain;
}

static PyObject *truth(int is) { return is < 0 ? NULL : PyBool_FromLong(is); }

/* fill_number(array, value) -> bool */
static PyObject *fill_number(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    if (arity(n, 2, "fill_number") < 0 || !is_array(arguments[0])) return NULL;
    return truth(changed(arguments[0], number(arguments[1]), change_fill));
}

/* write_plain(array, value) -> bool */
static PyObject *write_plain(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    if (arity(n, 2, "write_plain") < 0 || !is_array(arguments[0])) return NULL;
    int done = changed(arguments[0], number(arguments[1]), change_fill);
    if (!done && is_plain_exporter(arguments[1])) done = change_write_bytes(arguments[0], arguments[1]);
    return truth(done ? done : changed(arguments[0], elements_of(arguments[1]), change_write));
}

/* write_from(array, value) -> bool */
static PyObject *write_from(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    if (arity(n, 2, "write_from") < 0 || !is_array(arguments[0])) return NULL;
    return truth(is_plain_exporter(arguments[1]) ? change_write_bytes(arguments[0], arguments[1]) : 0);
}

PyMethodDef plain_call_functions[] = {
    {"sharing", sharing, METH_VARARGS,
     "sharing(function, signature, module): hamr.buffer, in front of function, which does the same."},
    {"fill_number", FAST(fill_number), METH_FASTCALL,
     "fill_number(array, value) -> bool: set every element to a plain number, if value is one."},
    {"write_plain", FAST(write_plain), METH_FASTCALL,
     "write_plain(array, value) -> bool: set every element from a plain number, or an array known to share, if value "
     "is one."},
    {"write_from", FAST(write_from), METH_FASTCALL,
     "write_from(array, value) -> bool: copy a plain array's elements to a device's of the same shape and type, if "
     "both lie in C order."},
    {NULL, NULL, 0, NULL},
};
