#include "core/machine.h"

#include <stdlib.h>

#include "base/containers.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/texts.h"

static const hamr_functions *loaded(void) { return core_load() < 0 ? NULL : core_functions(); }

/* Py_BuildValue raises where one of the objects could not be made. */
static PyObject *backend_row(const hamr_backend *backend) {
    return Py_BuildValue("(NNNNNi)", core_text(backend->name), core_text(backend->reason), core_texts(backend->tried),
                         core_texts(backend->allocators),
                         PyBool_FromLong(backend->available), (int)backend->device_count);
}

static PyObject *backends(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    hamr_strings *names;
    hamr_error *error;
    const hamr_functions *functions = loaded();
    if (!functions) return NULL;
    if ((error = functions->backends(&names))) return core_failed(error);
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < names->count; i++) {
        hamr_backend *found;
        if (!(functions = loaded())) { /* anew: making an object may run a finaliser that forks */
            Py_CLEAR(list);
            break;
        }
        Py_BEGIN_ALLOW_THREADS
        error = functions->backend(names->items[i], &found);
        Py_END_ALLOW_THREADS
        list_put(&list, error ? core_failed(error) : backend_row(found));
        if (!error) free(found);
    }
    free(names);
    return list;
}

static PyObject *describe(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *backend;
    int device, whole;
    hamr_strings *facts = NULL;
    hamr_error *error;
    if (!PyArg_ParseTuple(arguments, "sip", &backend, &device, &whole)) return NULL;
    const hamr_functions *functions = loaded();
    if (!functions) return NULL;
    Py_BEGIN_ALLOW_THREADS
    error = functions->describe(backend, device, &facts);
    Py_END_ALLOW_THREADS
    PyObject *found = error && whole ? NULL : PyDict_New();
    for (int64_t i = 0; found && facts && i + 1 < facts->count; i += 2)
        dict_put(&found, facts->items[i], core_text(facts->items[i + 1]));
    if (error && found) dict_put(&found, "error", core_text(error->message));
    functions->free(facts);
    if (error && whole) return core_failed(error);
    functions->free(error);
    return found;
}

static PyObject *memory_info(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *backend;
    int device;
    int64_t free, total;
    if (!PyArg_ParseTuple(arguments, "si", &backend, &device)) return NULL;
    const hamr_functions *functions = loaded();
    if (!functions) return NULL;
    hamr_error *error = functions->memory_info(backend, device, &free, &total);
    return error ? core_failed(error) : Py_BuildValue("(LL)", (long long)free, (long long)total);
}

static PyObject *locate(PyObject *Py_UNUSED(module), PyObject *address) {
    hamr_location found;
    uint64_t at = PyLong_AsUnsignedLongLong(address);
    if (at == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    const hamr_functions *functions = loaded();
    if (!functions) return NULL;
    hamr_error *error = functions->locate(at, &found);
    return error ? core_failed(error) : Py_BuildValue("(iiKL)", (int)found.allocator, (int)found.device,
                                                      (unsigned long long)found.base, (long long)found.size);
}

static PyObject *statistics(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    hamr_statistics rows[HAMR_ALLOCATORS];
    const hamr_functions *functions = loaded();
    int32_t n = functions ? functions->statistics(rows, HAMR_ALLOCATORS) : 0;
    PyObject *list = functions ? PyList_New(0) : NULL;
    for (int32_t i = 0; list && i < n; i++) {
        const hamr_statistics *s = &rows[i];
        list_put(&list, Py_BuildValue("(iLLLLLLL)", (int)s->allocator, (long long)s->live, (long long)s->current,
                                      (long long)s->peak, (long long)s->made, (long long)s->adopted,
                                      (long long)s->kept, (long long)s->reused));
    }
    return list;
}

PyMethodDef machine_functions[] = {
    {"backends", backends, METH_NOARGS,
     "backends() -> [(name, why it is not available or None, what was tried, allocators, whether it is available, "
     "devices)]"},
    {"describe", describe, METH_VARARGS,
     "describe(backend, device, whole) -> dict: what is known of a device. whole: an error is raised, not one of the "
     "facts."},
    {"memory_info", memory_info, METH_VARARGS, "memory_info(backend, device) -> (free, total): bytes of a device."},
    {"locate", locate, METH_O, "locate(address) -> (allocator or -1, device, base, size): which memory an address is."},
    {"statistics", statistics, METH_NOARGS,
     "statistics() -> [(allocator, live, current, peak, made, adopted, kept, reused)]: of each allocator that was "
     "used."},
    {NULL, NULL, 0, NULL},
};
