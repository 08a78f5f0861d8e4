#include "native.h"

static PyObject *adopt_dlpack(PyObject *module, PyObject *const *arguments, Py_ssize_t n) {
    (void)module, (void)arguments, (void)n;
    return PyErr_Format(PyExc_BufferError, "not written yet");
}

PyMethodDef dlpack_functions[] = {
    {"adopt_dlpack", FAST(adopt_dlpack), METH_FASTCALL, "adopt_dlpack(type, object, stream, transfer, wait): share what an object exports by DLPack."},
    {NULL, NULL, 0, NULL},
};
