/* __cuda_array_interface__, version 3: offered by arrays that CUDA reaches, and read from other libraries' arrays where
 * it is of the simplest form; Python reads the others, and says what is wrong with them. */
#include "protocols/cuda_interface.h"

#include <string.h>

#include "array/access.h"
#include "array/adopt.h"
#include "array/array.h"
#include "array/description.h"
#include "array/order.h"
#include "base/containers.h"
#include "base/elements.h"
#include "base/python.h"
#include "memory/block.h"
#include "memory/owner.h"
#include "plain/layout.h"
#include "plain/memory.h"

enum { INTERFACE, SHAPE, TYPESTR, DATA, STRIDES, VERSION, MASK, STREAM, NAMES };
static PyObject *names[NAMES];

int cuda_interface_setup(void) {
    static const char *const texts[NAMES] = {
        [INTERFACE] = "__cuda_array_interface__", [SHAPE] = "shape", [TYPESTR] = "typestr", [DATA] = "data",
        [STRIDES] = "strides", [VERSION] = "version", [MASK] = "mask", [STREAM] = "stream",
    };
    return intern_names(names, texts, NAMES);
}

static PyObject *refuse(const Array *self) {
    if (!description_offered(self))
        return PyErr_Format(PyExc_AttributeError,
                            "__cuda_array_interface__: CUDA does not reach this memory; get_cuda_accessible() brings "
                            "it there");
    return PyErr_Format(PyExc_AttributeError, "__cuda_array_interface__: element type %s has no typestr of its own",
                        element_label(self->array.element));
}

/* A dictionary of the taker's own, who may change it, with the stream to wait for. */
static PyObject *describe_now(Array *self) {
    uint64_t stream;
    PyObject *interface = Py_NewRef(self->interface);
    PyObject *copy = order_covering(self, &stream) == 0 ? PyDict_Copy(interface) : NULL;
    if (copy && stream) {
        PyObject *number = PyLong_FromUnsignedLongLong(stream);
        if (!number || PyDict_SetItem(copy, names[STREAM], number) < 0) Py_CLEAR(copy);
        Py_XDECREF(number);
    }
    Py_DECREF(interface);
    return copy;
}

PyObject *cuda_array_interface(PyObject *object, void *Py_UNUSED(closure)) {
    Array *self = (Array *)object;
    for (;;) {
        if (self->closed) return array_freed(self);
        if (array_usable(self) < 0 || (!self->interface && description_prepare(self) < 0)) return NULL;
        if (!self->interface) return refuse(self);
        /* What is made on the way may run finalisers, which may change the array. */
        uint32_t changes = self->changes;
        Block *block = (Block *)Py_XNewRef((PyObject *)self->block);
        PyObject *copy = describe_now(self);
        int failed = !copy, whole = changes == self->changes;
        if (copy && (!whole || array_keep(self, block) < 0)) Py_CLEAR(copy);
        if (block) memory_tell_address(&block->memory);
        Py_XDECREF((PyObject *)block);
        if (failed || whole) return copy;
    }
}

/* The dimensions in a tuple of plain int; -1 if it is anything else. */
static int plain_dimensions(PyObject *tuple, int64_t *values) {
    if (!tuple || !PyTuple_CheckExact(tuple)) return -1;
    Py_ssize_t n = PyTuple_Size(tuple);
    if (n > HAMR_MAX_DIMENSIONS) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (!PyLong_CheckExact(item)) return -1;
        values[i] = PyLong_AsLongLong(item);
        if (values[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
    }
    return (int)n;
}

static int32_t plain_element(PyObject *typestr) {
    if (!typestr || !PyUnicode_CheckExact(typestr)) return 0;
    const char *text = PyUnicode_AsUTF8AndSize(typestr, NULL);
    if (!text) {
        PyErr_Clear();
        return 0;
    }
    const ElementFacts *facts;
    for (int32_t i = 1; (facts = element_facts(i)); i++)
        if (facts->format && strcmp(facts->typestr, text) == 0) return i;
    return 0;
}

static int plain_unsigned(PyObject *number, uint64_t *value) {
    if (!PyLong_CheckExact(number)) return 0;
    *value = PyLong_AsUnsignedLongLong(number);
    if (*value != (uint64_t)-1 || !PyErr_Occurred()) return 1;
    PyErr_Clear();
    return 0;
}

/* Fills draft from a dictionary of the simplest form; 0 if it is another. */
static int read_plain(PyObject *interface, Draft *draft, uint64_t *producer) {
    hamr_array *array = &draft->array;
    PyObject *data = PyDict_GetItemWithError(interface, names[DATA]),
        *strides = PyDict_GetItemWithError(interface, names[STRIDES]);
    PyObject *version = PyDict_GetItemWithError(interface, names[VERSION]),
        *mask = PyDict_GetItemWithError(interface, names[MASK]);
    PyObject *stream = PyDict_GetItemWithError(interface, names[STREAM]), *readonly;
    uint64_t number;
    array->element = plain_element(PyDict_GetItemWithError(interface, names[TYPESTR]));
    array->ndim = plain_dimensions(PyDict_GetItemWithError(interface, names[SHAPE]), array->shape);
    if (!array->element || array->ndim < 0 || (mask && mask != Py_None)) return 0;
    if (!version || !plain_unsigned(version, &number) || number > 3) return 0;
    if (!data || !PyTuple_CheckExact(data) || PyTuple_Size(data) != 2) return 0;
    readonly = PyTuple_GetItem(data, 1);
    if (!plain_unsigned(PyTuple_GetItem(data, 0), &array->pointer) || !PyBool_Check(readonly)) return 0;
    if (readonly == Py_True) array->flags |= HAMR_READ_ONLY;
    *producer = 0;
    if (stream && stream != Py_None && (!plain_unsigned(stream, producer) || *producer == 0)) return 0;
    if (PyErr_Occurred()) return 0; /* a key's own __eq__ raised */
    if (strides && strides != Py_None) return plain_dimensions(strides, array->strides) == array->ndim;
    array_c_strides(array);
    return 1;
}

/* Arguments: type, object, stream, transfer, wait. Shares what object's
 * __cuda_array_interface__ describes. None if it has none of the simplest form. */
PyObject *adopt_cuda(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Draft draft;
    uint64_t producer;
    if (n != 5) return PyErr_Format(PyExc_TypeError, "adopt_cuda takes 5 arguments, got %zd", n);
    if (!is_array_type(arguments[0])) return NULL;
    draft_start(&draft);
    draft.array.stream = PyLong_AsUnsignedLongLong(arguments[2]);
    draft.array.transfer = (int32_t)PyLong_AsLong(arguments[3]);
    int wait = PyObject_IsTrue(arguments[4]);
    if (wait < 0 || PyErr_Occurred()) return NULL;
    PyObject *interface = PyObject_GetAttr(arguments[1], names[INTERFACE]);
    /* A key's __eq__ may change a dictionary that somebody else knows, too. */
    if (interface && PyDict_CheckExact(interface) && Py_REFCNT(interface) > 1) {
        PyObject *own = PyDict_Copy(interface);
        Py_DECREF(interface);
        interface = own;
    }
    if (!interface || !PyDict_CheckExact(interface) || PyType_Check(arguments[1]) ||
        !read_plain(interface, &draft, &producer)) {
        Py_XDECREF(interface);
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    Py_DECREF(interface);
    Owner *owner = owner_new(arguments[1], NULL);
    return owner ? adopt_cuda_memory((PyTypeObject *)arguments[0], &draft, owner, wait ? producer : 0) : NULL;
}
