// An extension whose buffers keep a Python object while they share its memory, as modules wrapped by SWIG do.
#include "hamr/cpp/python_deleter.hpp"

#include <cstddef>
#include <memory>
#include <thread>

static std::unique_ptr<hamr::buffer<double>> kept;

static PyObject *share(PyObject *, PyObject *arguments) {
    unsigned long long address = 0;
    Py_ssize_t size = 0;
    PyObject *object = nullptr;
    if (!PyArg_ParseTuple(arguments, "KnO", &address, &size, &object)) return nullptr;
    auto *data = reinterpret_cast<double *>(address);
    const auto n = static_cast<std::size_t>(size);
    const hamr::python_deleter<double> keeps(data, n, object), same(keeps);
    kept = std::make_unique<hamr::buffer<double>>(hamr::buffer_allocator::malloc, n, -1, data, same);
    Py_RETURN_NONE;
}

static PyObject *total(PyObject *, PyObject *) {
    double sum = 0;
    for (std::size_t i = 0; i < kept->size(); i++) sum += kept->data()[i];
    return PyFloat_FromDouble(sum);
}

static PyObject *forget(PyObject *, PyObject *) {
    Py_BEGIN_ALLOW_THREADS std::thread([] { kept.reset(); }).join();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"share", share, METH_VARARGS, nullptr},
    {"total", total, METH_NOARGS, nullptr},
    {"forget", forget, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "keeps_objects", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_keeps_objects() { return PyModule_Create(&definition); }
