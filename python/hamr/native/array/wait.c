#include "array/wait.h"

#include "array/access.h"
#include "array/array.h"
#include "array/default_stream.h"
#include "array/snapshot.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"

/* How long a signal, such as Ctrl-C, may have to wait. */
#define SLICE_MS 50

static int wait(Array *source, const hamr_functions *functions) {
    int32_t over = 0;
    hamr_error *error;
    while (!over) {
        Py_BEGIN_ALLOW_THREADS
        error = functions->wait_array(&source->array, SLICE_MS, &over);
        Py_END_ALLOW_THREADS
        if (error) return core_raise(error);
        if (!over && PyErr_CheckSignals() < 0) return -1;
        if (core_functions() != functions) return array_usable(source); /* a handler has forked: this is the child */
    }
    Py_BEGIN_ALLOW_THREADS
    error = functions->synchronize(&source->array);
    Py_END_ALLOW_THREADS
    return error ? core_raise(error) : 0;
}

/* Whether the driver says at once that there is nothing to wait for, which takes no call of the core's. Of a
 * stream that is being captured it cannot say so. */
static int at_rest(const Array *source) {
    if (!source->block || array_has_own_order(source)) return 0;
    const hamr_devices *devices = default_stream_driver(source);
    return devices && default_stream_captured(devices) == 0 && default_stream_idle(source);
}

int array_wait_pinned(Array *source) {
    if (core_load() < 0) return -1;
    return at_rest(source) ? 0 : wait(source, core_functions());
}

int array_wait(Array *self) {
    Array *source = array_pin(self);
    int waited = source ? array_wait_pinned(source) : -1;
    Py_XDECREF((PyObject *)source);
    return waited;
}

static PyObject *settle(PyObject *Py_UNUSED(module), PyObject *array) {
    if (!is_array(array)) return NULL;
    if (array_wait((Array *)array) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *settled(PyObject *Py_UNUSED(module), PyObject *array) {
    uint64_t stream = 0;
    if (!is_array(array)) return NULL;
    Array *source = array_pin((Array *)array);
    const hamr_functions *functions = source && core_load() == 0 ? core_functions() : NULL;
    hamr_error *error = functions ? functions->covering(&source->array, &stream) : NULL;
    if (error) core_raise(error);
    else if (functions && !stream && (error = functions->synchronize(&source->array))) core_raise(error);
    Py_XDECREF((PyObject *)source);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(!stream);
}

PyMethodDef wait_functions[] = {
    {"settle", settle, METH_O,
     "settle(array): wait until all work on the elements is over; raises what went wrong on the device."},
    {"settled", settled, METH_O,
     "settled(array) -> bool: whether settle() would return, or raise, at once; raises what it would."},
    {NULL, NULL, 0, NULL},
};
