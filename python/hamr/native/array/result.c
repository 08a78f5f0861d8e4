#include "array/result.h"

#include "array/array.h"
#include "base/heap_type.h"
#include "base/python.h"
#include "core/core.h"
#include "memory/block.h"

static PyTypeObject *result_type;

static void result_dealloc(PyObject *object) {
    Result *self = (Result *)object;
    int ours = self->generation == core_generation && self->array.memory != self->before;
    if (self->array.memory && ours) block_give_back(&self->array);
    type_free(object);
}

Result *result_new(void) {
    Result *self = type_allocate(result_type);
    if (!self) return NULL;
    self->generation = core_generation;
    self->array.shape = self->dimensions;
    self->array.strides = self->dimensions + HAMR_MAX_DIMENSIONS;
    return self;
}

/* result(before): room for the Go core to describe what it made of `before`. */
static PyObject *new_result(PyObject *module, PyObject *before) {
    (void)module;
    Result *self = result_new();
    if (self && PyObject_TypeCheck(before, array_type)) self->before = ((Array *)before)->array.memory;
    return (PyObject *)self;
}

static PyObject *get_address(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromUnsignedLongLong((uint64_t)(uintptr_t)&((Result *)self)->array);
}

/* The Block of what the result describes: a new one, or that of `from` if the
 * memory is the same. -1: an error. */
int result_block(Result *result, Array *from, Block **spare, Block **block) {
    *block = NULL;
    uint64_t token = result->array.memory;
    if (!token) return 0;
    if (from && from->block && token == result->before) {
        *block = (Block *)Py_NewRef((PyObject *)from->block);
    } else if (token == result->before) {
        PyErr_SetString(PyExc_RuntimeError, "a result names memory that its source does not have");
        return -1;
    } else {
        result->array.memory = 0;
        result->before = 0;
        hamr_array array = result->array;
        array.memory = token;
        if (spare) {
            *block = *spare;
            *spare = NULL;
            block_fill(*block, &array, NULL, result->generation);
            return 0;
        }
        if (!(*block = block_new(&array, NULL))) return -1;
        (*block)->generation = result->generation; /* a fork may lie between */
    }
    return 0;
}

/* adopt_result(type, result, source, handle): a new array that result describes. */
static PyObject *from_result(PyObject *module, PyObject *arguments) {
    PyObject *type, *result, *source;
    int handle;
    Block *block;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!O!O!p", &PyType_Type, &type, result_type, &result, array_type, &source, &handle)) return NULL;
    Array *self = array_new((PyTypeObject *)type);
    if (!self) return NULL;
    if (result_block((Result *)result, (Array *)source, NULL, &block) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    array_follow(self, (Array *)source);
    self->fixed = (char)handle;
    self->temporary = handle && block != ((Array *)source)->block;
    if (array_store(self, &((Result *)result)->array, block) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

PyMethodDef result_functions[] = {
    {"result", new_result, METH_O, "result(before): room for the Go core to describe what it made of before."},
    {"from_result", from_result, METH_VARARGS, "from_result(type, result, source, handle): a new array that result describes."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"_address", get_address, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, result_dealloc},
    {Py_tp_getset, getset},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.Result",
    .basicsize = sizeof(Result),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int result_setup(PyObject *module) {
    if (!result_type)
    result_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return result_type && PyModule_AddObjectRef(module, "Result", (PyObject *)result_type) == 0 ? 0 : -1;
}
