/* An extension in C, over Python's limited API: hamr/python.h. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <hamr/python.h>

static hamr_buffer *kept;

/* take(object) -> (address, element, allocator, device, transfer, stream, read-only, shape, strides) */
static PyObject *facts(PyObject *module, PyObject *object) {
    hamr_buffer *buffer;
    (void)module;
    if (hamr_from_python(object, &buffer)) return NULL;
    const hamr_info *info = hamr_info_of(buffer);
    PyObject *shape = PyTuple_New(info->ndim), *strides = PyTuple_New(info->ndim);
    for (int i = 0; i < info->ndim; i++) {
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(info->shape[i]));
        PyTuple_SetItem(strides, i, PyLong_FromLongLong(info->strides[i]));
    }
    PyObject *result = Py_BuildValue("(KsiiiKiNN)", (unsigned long long)(uintptr_t)hamr_data(buffer),
                                     hamr_element_name(info->element), info->allocator, info->device, info->transfer,
                                     (unsigned long long)(uintptr_t)info->stream,
                                     (int)(info->flags & HAMR_INFO_READ_ONLY), shape, strides);
    hamr_release(buffer);
    return result;
}

static PyObject *round_trip(PyObject *module, PyObject *object) {
    hamr_buffer *buffer;
    (void)module;
    if (hamr_from_python(object, &buffer)) return NULL;
    PyObject *result = hamr_to_python(buffer);
    hamr_release(buffer);
    return result;
}

static PyObject *keep(PyObject *module, PyObject *object) {
    (void)module;
    if (kept && hamr_release(kept)) return hamr_raise();
    kept = NULL;
    if (object != Py_None && hamr_from_python(object, &kept)) return NULL;
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *get_kept(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return hamr_to_python(kept);
}

static PyObject *released(PyObject *module, PyObject *unused) {
    hamr_buffer *buffer;
    int64_t n = 3;
    (void)module;
    (void)unused;
    if (hamr_create(&buffer, HAMR_FLOAT32, 1, &n, NULL, NULL) || hamr_release(buffer)) return hamr_raise();
    return hamr_to_python(buffer);
}

static PyObject *too_much(PyObject *module, PyObject *unused) {
    hamr_buffer *buffer;
    int64_t n = INT64_C(1) << 50;
    (void)module;
    (void)unused;
    if (hamr_create(&buffer, HAMR_UINT8, 1, &n, NULL, NULL)) return hamr_raise();
    return hamr_to_python(buffer);
}

static PyMethodDef methods[] = {
    {"facts", facts, METH_O, NULL},
    {"round_trip", round_trip, METH_O, NULL},
    {"keep", keep, METH_O, NULL},
    {"get_kept", get_kept, METH_NOARGS, NULL},
    {"released", released, METH_NOARGS, NULL},
    {"too_much", too_much, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "exchange", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_exchange(void) { return PyModule_Create(&definition); }
