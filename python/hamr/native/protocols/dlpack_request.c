/* The arguments of __dlpack__. */
#include "protocols/dlpack_request.h"

#include <string.h>

#include "base/python.h"
#include "plain/dlpack.h"

/* An int, cut to what fits; -1 with an exception. */
static int read_entry(PyObject *item, int64_t *value) {
    PyObject *number = PyNumber_Index(item);
    if (!number) return -1;
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow) *value = overflow < 0 ? INT64_MIN : INT64_MAX;
    return 0;
}

/* The two entries of a pair of int. */
static int read_pair(PyObject *pair, const char *name, int64_t values[2]) {
    Py_ssize_t n = PySequence_Check(pair) ? PySequence_Size(pair) : -1;
    int wrong = n < 0;
    if (wrong) PyErr_Clear();
    for (Py_ssize_t i = 0; !wrong && n == 2 && i < 2; i++) {
        PyObject *item = PySequence_GetItem(pair, i);
        if (!item || read_entry(item, &values[i]) < 0) {
            Py_XDECREF(item);
            if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
            PyErr_Clear();
            wrong = 1;
        } else {
            Py_DECREF(item);
        }
    }
    if (!wrong && n == 2) return 0;
    return RAISE(PyExc_TypeError, "%s is %R: accepted are None and a tuple of two int", name, pair);
}

static int read_version(PyObject *value, Request *request) {
    int64_t version[2];
    if (value == Py_None) return 0;
    if (PyTuple_CheckExact(value) && PyTuple_Size(value) == 2) {
        PyObject *major = PyTuple_GetItem(value, 0);
        if (PyLong_CheckExact(major) && PyLong_CheckExact(PyTuple_GetItem(value, 1))) {
            long number = PyLong_AsLong(major);
            if (number == -1 && PyErr_Occurred()) PyErr_Clear();
            else return (request->versioned = number >= DLPACK_MAJOR), 0;
        }
    }
    if (read_pair(value, "max_version", version) < 0) return -1;
    request->versioned = version[0] >= DLPACK_MAJOR;
    return 0;
}

static int read_device(PyObject *value, Request *request) {
    int64_t device[2];
    if (value == Py_None) return 0;
    if (read_pair(value, "dl_device", device) < 0) return -1;
    request->placed = 1;
    request->device_object = value;
    int fits = device[0] == (int32_t)device[0] && device[1] == (int32_t)device[1];
    request->device = fits ? (DLDevice){(int32_t)device[0], (int32_t)device[1]} : (DLDevice){0, 0};
    return 0;
}

static int read_stream(PyObject *value, Request *request) {
    if (value == Py_None) return 0;
    if (PyBool_Check(value) || !PyIndex_Check(value))
        return RAISE(PyExc_TypeError, "stream is %R: accepted are None and an int", value);
    PyObject *number = PyNumber_Index(value);
    if (!number) return -1;
    int overflow;
    long long narrow = PyLong_AsLongLongAndOverflow(number, &overflow);
    request->stream = overflow > 0 ? PyLong_AsUnsignedLongLong(number) : (uint64_t)narrow;
    Py_DECREF(number);
    request->order = !overflow && narrow == -1 ? NO_ORDER : BEFORE_STREAM;
    if (overflow >= 0 && !PyErr_Occurred() && (overflow || narrow >= -1)) return 0;
    PyErr_Clear();
    return RAISE(PyExc_ValueError,
                 "stream is %R: accepted are None, -1 for no synchronisation, and handles below 2**64", value);
}

static int read_copy(PyObject *value, Request *request) {
    if (value == Py_None) return 0;
    if (PyBool_Check(value)) {
        request->copy = value == Py_True;
        return 0;
    }
    return RAISE(PyExc_TypeError, "copy is %R: accepted are True, False and None", value);
}

#define READERS 4

/* In the order of what consumers send most often. Not all send interned names. */
static struct {
    const char *text;
    int (*read)(PyObject *, Request *);
    PyObject *name;
} readers[READERS] = {{.text = "max_version", .read = read_version}, {.text = "copy", .read = read_copy},
                      {.text = "dl_device", .read = read_device}, {.text = "stream", .read = read_stream}};

int dlpack_request_setup(void) {
    for (int i = 0; i < READERS; i++)
        if (!readers[i].name && !(readers[i].name = PyUnicode_InternFromString(readers[i].text))) return -1;
    return 0;
}

static int read_argument(PyObject *name, PyObject *value, Request *request) {
    for (int i = 0; i < READERS; i++)
        if (name == readers[i].name) return readers[i].read(value, request);
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(name, &length);
    for (int i = 0; text && i < READERS; i++)
        if (length == (Py_ssize_t)strlen(readers[i].text) && memcmp(text, readers[i].text, (size_t)length) == 0)
            return readers[i].read(value, request);
    if (!text) PyErr_Clear(); /* no UTF-8 */
    PyErr_Format(PyExc_TypeError,
                 "__dlpack__() got an unexpected keyword argument %R: accepted are stream, max_version, dl_device and "
                 "copy", name);
    return -1;
}

int dlpack_request_read(Request *request, PyObject *const *arguments, Py_ssize_t n, PyObject *names) {
    *request = (Request){.copy = -1};
    if (n) return RAISE(PyExc_TypeError, "__dlpack__() takes keyword arguments alone, got %zd positional", n);
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; i++)
        if (read_argument(PyTuple_GetItem(names, i), arguments[i], request) < 0) return -1;
    return 0;
}
