/* __cuda_array_interface__, version 3: offered by arrays that CUDA reaches, and
 * read from other libraries' arrays where it is of the simplest form; Python reads
 * the others, and says what is wrong with them. */
#include "native.h"

#include <string.h>

static PyObject *interface_name, *shape_name, *typestr_name, *data_name, *strides_name, *version_name, *mask_name, *stream_name;

int cuda_interface_setup(void) {
    static const struct { PyObject **name; const char *text; } names[] = {
        {&interface_name, "__cuda_array_interface__"}, {&shape_name, "shape"}, {&typestr_name, "typestr"}, {&data_name, "data"},
        {&strides_name, "strides"}, {&version_name, "version"}, {&mask_name, "mask"}, {&stream_name, "stream"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!*names[i].name && !(*names[i].name = PyUnicode_InternFromString(names[i].text))) return -1;
    return 0;
}

/* The dictionary of an array that does not change, without its stream. */
static PyObject *describe(const hamr_array *array) {
    const ElementFacts *facts = element_facts(array->element);
    PyObject *shape = array_dimensions(array->shape, array->ndim);
    PyObject *strides = array_contiguous(array, 0) ? Py_NewRef(Py_None) : array_dimensions(array->strides, array->ndim);
    if (!shape || !strides) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    unsigned long long pointer = array_count(array) ? array->pointer : 0;
    return Py_BuildValue("{O:N,O:s,O:(KO),O:N,O:i,O:O}", shape_name, shape, typestr_name, facts->typestr,
                         data_name, pointer, (array->flags & HAMR_READ_ONLY) ? Py_True : Py_False,
                         strides_name, strides, version_name, 3, stream_name, Py_None);
}

int cuda_interface_prepare(Array *self) {
    const ElementFacts *facts = element_facts(self->array.element);
    if (!facts || !facts->format || !(self->array.flags & HAMR_REACHABLE(HAMR_CUDA))) return 0;
    /* Making tuples may run finalisers, which may change the array. */
    uint32_t changes = self->changes;
    Array *source = (Array *)array_snapshot(self, array_type);
    PyObject *interface = source ? describe(&source->array) : NULL;
    Py_XDECREF((PyObject *)source);
    if (!interface) return -1;
    if (changes == self->changes && !self->interface) self->interface = interface;
    else Py_DECREF(interface);
    return 0;
}

static PyObject *refuse(const Array *self) {
    const ElementFacts *facts = element_facts(self->array.element);
    if (!(self->array.flags & HAMR_REACHABLE(HAMR_CUDA)))
        return PyErr_Format(PyExc_AttributeError, "__cuda_array_interface__: CUDA does not reach this memory; get_cuda_accessible() brings it there");
    return PyErr_Format(PyExc_AttributeError, "__cuda_array_interface__: element type %s has no typestr of its own", facts ? facts->typestr : "?");
}

/* A stream that covers all work pending on the elements; 0 if there is none. */
static int covering(Array *self, uint64_t *stream) {
    const volatile uint32_t *marks = (const volatile uint32_t *)(uintptr_t)self->array.marks;
    *stream = 0;
    if (!marks || (!*marks && !self->array.stream)) return 0;
    Array *source = array_pin(self);
    if (!source) return -1;
    char *message = core_functions()->covering(&source->array, stream);
    Py_DECREF(source);
    return message ? core_raise(message) : 0;
}

PyObject *cuda_array_interface(PyObject *object, void *closure) {
    (void)closure;
    Array *self = (Array *)object;
    if (self->closed) return core_freed();
    if (array_usable(self) < 0 || (!self->interface && cuda_interface_prepare(self) < 0)) return NULL;
    PyObject *interface = self->interface;
    if (!interface) return refuse(self);
    Py_INCREF(interface);
    uint64_t stream;
    PyObject *copy = covering(self, &stream) < 0 ? NULL : PyDict_Copy(interface);
    Py_DECREF(interface);
    if (!copy || !stream) return copy;
    PyObject *number = PyLong_FromUnsignedLongLong(stream);
    if (!number || PyDict_SetItem(copy, stream_name, number) < 0) Py_CLEAR(copy);
    Py_XDECREF(number);
    return copy;
}

#define EXACT_INT(object) (PyLong_CheckExact(object))

/* The dimensions in a tuple of plain int; -1 if it is anything else. */
static int plain_dimensions(PyObject *tuple, int64_t *values) {
    if (!tuple || !PyTuple_CheckExact(tuple)) return -1;
    Py_ssize_t n = PyTuple_Size(tuple);
    if (n > HAMR_MAX_DIMENSIONS) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (!EXACT_INT(item)) return -1;
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
    if (!EXACT_INT(number)) return 0;
    *value = PyLong_AsUnsignedLongLong(number);
    if (*value != (uint64_t)-1 || !PyErr_Occurred()) return 1;
    PyErr_Clear();
    return 0;
}

/* Fills draft from a dictionary of the simplest form; 0 if it is another. */
static int read_plain(PyObject *interface, Draft *draft, uint64_t *producer) {
    hamr_array *array = &draft->array;
    PyObject *data = PyDict_GetItemWithError(interface, data_name), *strides = PyDict_GetItemWithError(interface, strides_name);
    PyObject *version = PyDict_GetItemWithError(interface, version_name), *mask = PyDict_GetItemWithError(interface, mask_name);
    PyObject *stream = PyDict_GetItemWithError(interface, stream_name), *readonly;
    uint64_t number;
    array->element = plain_element(PyDict_GetItemWithError(interface, typestr_name));
    array->ndim = plain_dimensions(PyDict_GetItemWithError(interface, shape_name), array->shape);
    if (!array->element || array->ndim < 0 || (mask && mask != Py_None)) return 0;
    if (!version || !plain_unsigned(version, &number) || number < 2 || number > 3) return 0;
    if (!data || !PyTuple_CheckExact(data) || PyTuple_Size(data) != 2) return 0;
    readonly = PyTuple_GetItem(data, 1);
    if (!plain_unsigned(PyTuple_GetItem(data, 0), &array->pointer) || !PyBool_Check(readonly)) return 0;
    if (readonly == Py_True) array->flags |= HAMR_READ_ONLY;
    *producer = 0;
    if (stream && stream != Py_None && (!plain_unsigned(stream, producer) || *producer == 0)) return 0;
    if (strides && strides != Py_None) return plain_dimensions(strides, array->strides) == array->ndim;
    draft_c_strides(array);
    return 1;
}

/* adopt_cuda(type, object, stream, transfer, wait): share what object's
 * __cuda_array_interface__ describes. None if it has none of the simplest form. */
static PyObject *adopt_cuda(PyObject *module, PyObject *const *arguments, Py_ssize_t n) {
    Draft draft;
    uint64_t producer;
    (void)module;
    if (n != 5) return PyErr_Format(PyExc_TypeError, "adopt_cuda takes 5 arguments, got %zd", n);
    if (!PyType_Check(arguments[0]) || !PyType_IsSubtype((PyTypeObject *)arguments[0], array_type))
        return PyErr_Format(PyExc_TypeError, "%R is not a subclass of Array", arguments[0]);
    draft_start(&draft);
    draft.array.stream = PyLong_AsUnsignedLongLong(arguments[2]);
    draft.array.transfer = (int32_t)PyLong_AsLong(arguments[3]);
    int wait = PyObject_IsTrue(arguments[4]);
    if (wait < 0 || PyErr_Occurred()) return NULL;
    PyObject *interface = PyObject_GetAttr(arguments[1], interface_name);
    if (!interface || !PyDict_CheckExact(interface) || PyType_Check(arguments[1]) || !read_plain(interface, &draft, &producer)) {
        Py_XDECREF(interface);
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    draft.array.allocator = HAMR_ANY_ALLOCATOR;
    draft.array.device = HAMR_HOST_DEVICE;
    Py_DECREF(interface);
    Owner *owner = owner_new(arguments[1], NULL);
    return owner ? adopt_device((PyTypeObject *)arguments[0], &draft, owner, wait ? producer : 0) : NULL;
}

PyMethodDef cuda_interface_functions[] = {
    {"adopt_cuda", FAST(adopt_cuda), METH_FASTCALL,
     "adopt_cuda(type, object, stream, transfer, wait): share by __cuda_array_interface__, if that is of the simplest form, else None."},
    {NULL, NULL, 0, NULL},
};
