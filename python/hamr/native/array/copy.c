#include "array/copy.h"

#include "array/array.h"
#include "array/result.h"
#include "array/snapshot.h"
#include "base/dimensions.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/patience.h"
#include "core/relief.h"
#include "core/texts.h"
#include "memory/block.h"

static PyTypeObject *buffer_type;

PyTypeObject *copy_type(void) {
    if (!buffer_type) PyErr_SetString(PyExc_RuntimeError, "hamr is not initialised");
    return buffer_type;
}

/* The table, and a source that the core may be told of; NULL: an error. */
static const hamr_functions *functions_for(Array *self, Array **source) {
    *source = array_pin(self);
    const hamr_functions *functions = *source && core_load() == 0 ? core_functions() : NULL;
    if (!functions) Py_CLEAR(*source);
    return functions;
}

Array *array_copy(PyTypeObject *type, Array *self, int32_t allocator, int32_t device, int32_t element) {
    Array *source;
    Result result;
    hamr_error *error;
    const hamr_functions *functions = functions_for(self, &source);
    if (!functions) return NULL;
    Relief relief = relief_begin();
    do {
        functions = core_functions();
        result_start(&result, NULL);
        PATIENT_CALL(error, &source->array,
                     functions->copy(&source->array, allocator, device, element, &result.draft.array));
    } while (error && core_relieves(&relief, &error, &source->array.flags));
    relief_end(&relief);
    source->array.flags &= ~HAMR_OR_PAGEABLE;
    if (error) core_raise(error);
    Array *made = error ? NULL : result_array(&result, type, source);
    result_end(&result);
    Py_DECREF(source);
    return made;
}

static int check(PyObject *const *arguments, Py_ssize_t n, Py_ssize_t wanted, const char *name) {
    return arity(n, wanted, name) < 0 || !is_array_type(arguments[0]) || !is_array(arguments[1]) ? -1 : 0;
}

static PyObject *copy(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    static const char *const names[] = {"allocator", "device", "element"};
    int32_t numbers[3];
    if (check(arguments, n, 5, "copy") < 0) return NULL;
    for (int i = 0; i < 3; i++)
        if (read_int32(arguments[2 + i], names[i], &numbers[i]) < 0) return NULL;
    return (PyObject *)array_copy((PyTypeObject *)arguments[0], (Array *)arguments[1], numbers[0], numbers[1],
                                  numbers[2]);
}

static PyObject *reshape(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    int64_t shape[HAMR_MAX_DIMENSIONS];
    int32_t view = 0, copying;
    Array *source;
    Result result;
    hamr_error *error;
    if (check(arguments, n, 4, "reshape") < 0) return NULL;
    int ndim = read_dimensions(arguments[2], "shape", shape);
    if (ndim < 0 || read_int32(arguments[3], "copying", &copying) < 0) return NULL;
    const hamr_functions *functions = functions_for((Array *)arguments[1], &source);
    if (!functions) return NULL;
    Relief relief = relief_begin();
    do {
        functions = core_functions();
        result_start(&result, source);
        Py_BEGIN_ALLOW_THREADS
        error = functions->reshape(&source->array, ndim, shape, copying, &result.draft.array, &view);
        Py_END_ALLOW_THREADS
    } while (error && core_relieves(&relief, &error, &source->array.flags));
    relief_end(&relief);
    source->array.flags &= ~HAMR_OR_PAGEABLE;
    if (error) core_raise(error);
    Array *made = error ? NULL : result_array(&result, (PyTypeObject *)arguments[0], source);
    /* Of no bytes the core has no memory, and whoever lends them is to know all the same. */
    if (made && view && !made->block) made->block = (Block *)Py_XNewRef((PyObject *)source->block);
    result_end(&result);
    Py_DECREF(source);
    return made ? Py_BuildValue("(NN)", (PyObject *)made, PyBool_FromLong(view)) : NULL;
}

static PyObject *text(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    char *elements = NULL;
    Array *source;
    hamr_error *error;
    if (arity(n, 2, "text") < 0 || !is_array(arguments[0])) return NULL;
    long long limit = PyLong_AsLongLong(arguments[1]);
    if (limit == -1 && PyErr_Occurred()) return NULL;
    const hamr_functions *functions = functions_for((Array *)arguments[0], &source);
    if (!functions) return NULL;
    Relief relief = relief_begin();
    do {
        functions = core_functions();
        PATIENT_CALL(error, &source->array, functions->text(&source->array, limit, &elements));
    } while (error && core_relieves(&relief, &error, NULL));
    relief_end(&relief);
    Py_DECREF(source);
    if (error) {
        if (elements && core_functions()) core_functions()->free(elements); /* of the last moment */
        return core_failed(error);
    }
    PyObject *made = core_text(elements);
    functions->free(elements);
    return made;
}

static PyObject *set_buffer_type(PyObject *Py_UNUSED(module), PyObject *type) {
    if (!is_array_type(type)) return NULL;
    replace_reference((PyObject **)&buffer_type, Py_NewRef(type));
    Py_RETURN_NONE;
}

PyMethodDef copy_functions[] = {
    {"copy", FAST(copy), METH_FASTCALL,
     "copy(type, array, allocator, device, element): a new array with the same elements in C order, converted."},
    {"reshape", FAST(reshape), METH_FASTCALL,
     "reshape(type, array, shape, copying) -> (array, whether it is a view): the elements in another shape. copying "
     "is 0 where it must be, 1 never, 2 always."},
    {"text", FAST(text), METH_FASTCALL,
     "text(array, limit) -> str: the elements as HAMR prints them, shortened beyond limit."},
    {"set_buffer_type", set_buffer_type, METH_O,
     "set_buffer_type(type): what copies are, and what stands for tensors that C hands over."},
    {NULL, NULL, 0, NULL},
};
