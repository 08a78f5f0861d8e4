// A simulation in C++ that embeds Python, and has NumPy analyse its field where it is.
//
//     headers=$(python3 -c 'import hamr; print(hamr.get_include())')
//     c++ -std=c++17 $(python3-config --includes) -I"$headers" -o embedding embedding.cpp $(python3-config --ldflags --embed) -ldl
#include <Python.h>

#include <hamr.hpp>
#include <hamr/cpp/python.hpp>

#include <cstdio>

static const char *const analysis = R"(
import hamr
import numpy as np

history = []

def analyse(field):
    values = np.asarray(field)              # the simulation's own memory
    history.append(float(values.mean()))
    values[values > 2] = 2                  # which it may change

def report():
    live = hamr.stats()["allocators"]["malloc"]["live"]
    print("means:", [round(m, 3) for m in history], "fields in this process:", live)
)";

// What a function of the analysis returns, or NULL after a message of Python's.
static PyObject *call(const char *name, PyObject *argument) {
    PyObject *module = PyImport_AddModule("__main__"); // borrowed
    PyObject *result = argument ? PyObject_CallMethod(module, name, "O", argument) : PyObject_CallMethod(module, name, nullptr);
    if (!result) PyErr_Print();
    return result;
}

int main() {
    hamr::buffer<double> field(hamr::buffer_allocator::malloc, {64, 64}, 1);
    Py_Initialize();
    int failed = PyRun_SimpleString(analysis);
    PyObject *shared = failed ? nullptr : hamr::to_python(field); // once: it is the same memory at each step
    if (!shared) PyErr_Print();
    for (int step = 0; shared && step < 3 && !failed; step++) {
        for (double &value : field.read_write()) value *= 1.5;
        PyObject *result = call("analyse", shared);
        failed = result == nullptr;
        Py_XDECREF(result);
    }
    PyObject *result = shared && !failed ? call("report", nullptr) : nullptr;
    failed = result == nullptr;
    Py_XDECREF(result);
    Py_XDECREF(shared);
    Py_FinalizeEx();
    std::printf("after Python's end: %g\n", field.read()[0]);
    return failed;
}
