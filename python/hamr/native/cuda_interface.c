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
    while (!self->interface) {
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
    }
    return 0;
}

static PyObject *refuse(const Array *self) {
    if (!(self->array.flags & HAMR_REACHABLE(HAMR_CUDA)))
        return PyErr_Format(PyExc_AttributeError, "__cuda_array_interface__: CUDA does not reach this memory; get_cuda_accessible() brings it there");
    return PyErr_Format(PyExc_AttributeError, "__cuda_array_interface__: element type %s has no typestr of its own", element_label(self->array.element));
}

/* A dictionary of the taker's own, who may change it, with the stream to wait for. */
static PyObject *describe_now(Array *self) {
    uint64_t stream;
    PyObject *interface = Py_NewRef(self->interface);
    PyObject *copy = order_covering(self, &stream) == 0 ? PyDict_Copy(interface) : NULL;
    if (copy && stream) {
        PyObject *number = PyLong_FromUnsignedLongLong(stream);
        if (!number || PyDict_SetItem(copy, stream_name, number) < 0) Py_CLEAR(copy);
        Py_XDECREF(number);
    }
    Py_DECREF(interface);
    return copy;
}

PyObject *cuda_array_interface(PyObject *object, void *closure) {
    (void)closure;
    Array *self = (Array *)object;
    for (;;) {
        if (self->closed) return core_freed();
        if (array_usable(self) < 0 || (!self->interface && cuda_interface_prepare(self) < 0)) return NULL;
        if (!self->interface) return refuse(self);
        /* What is made on the way may run finalisers, which may change the array. */
        uint32_t changes = self->changes;
        Block *block = (Block *)Py_XNewRef((PyObject *)self->block);
        PyObject *copy = describe_now(self);
        int failed = !copy, whole = changes == self->changes;
        if (copy && (!whole || array_keep(self, block) < 0)) Py_CLEAR(copy);
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
    if (PyErr_Occurred()) return 0; /* a key's own __eq__ raised */
    if (strides && strides != Py_None) return plain_dimensions(strides, array->strides) == array->ndim;
    draft_c_strides(array);
    return 1;
}

/* Fills in where the driver says that the elements are. 0: they are nowhere, or it
 * takes the core to tell. */
static int locate(hamr_array *array) {
    const hamr_functions *functions = core_functions();
    if (!functions || !functions->devices->cuda_attributes) return 0;
    enum { TYPE, ORDINAL, MANAGED, START, SIZE, POOL, COUNT };
    static const int numbers[COUNT] = {[TYPE] = 2, [ORDINAL] = 9, [MANAGED] = 8, [START] = 11, [SIZE] = 12, [POOL] = 17};
    int asked[COUNT];
    uint64_t answers[COUNT] = {0};
    void *places[COUNT];
    int64_t low, high;
    for (int i = 0; i < COUNT; i++) {
        asked[i] = numbers[i];
        places[i] = &answers[i];
    }
    if (!array_span(array, &low, &high) || functions->devices->cuda_attributes(COUNT, asked, places, array->pointer) != 0) return 0;
    uint64_t first = array->pointer + (uint64_t)low, size = (uint64_t)high - (uint64_t)low;
    uint32_t type = (uint32_t)answers[TYPE];
    int32_t ordinal = (int32_t)(uint32_t)answers[ORDINAL];
    if (type < 1 || type > 2 || first < answers[START] || size > answers[SIZE] || first - answers[START] > answers[SIZE] - size) return 0;
    int managed = (uint32_t)answers[MANAGED] != 0, pinned = !managed && type == 1;
    if (!pinned && ordinal < 0) return 0;
    array->allocator = managed ? HAMR_ALLOCATOR_CUDA_UVA : pinned ? HAMR_ALLOCATOR_CUDA_HOST : answers[POOL] ? HAMR_ALLOCATOR_CUDA_ASYNC : HAMR_ALLOCATOR_CUDA;
    array->device = pinned ? HAMR_HOST_DEVICE : ordinal;
    array->base = first;
    array->size = size;
    array->capacity = array_count(array);
    array->flags |= allocator_table[array->allocator].reach * HAMR_HOST_REACHABLE;
    return 1;
}

#define LEGACY_STREAM 1

/* An array that the core is told of when it first has to do with it: most are only
 * handed on. Not where the producer's stream is one that may end before that. */
static PyObject *adopt_later(PyTypeObject *type, Draft *draft, Owner *owner, uint64_t producer) {
    Block *block = block_new(&draft->array, owner);
    if (!block) return NULL;
    block->producer = producer;
    Array *self = array_new(type);
    if (!self) {
        Py_DECREF(block);
        return NULL;
    }
    if (array_store(self, &draft->array, block) < 0) Py_CLEAR(self);
    return (PyObject *)self;
}

PyObject *adopt_cuda_memory(PyTypeObject *type, Draft *draft, Owner *owner, uint64_t producer) {
    draft->array.allocator = HAMR_ALLOCATOR_ANY;
    draft->array.device = HAMR_HOST_DEVICE;
    if (producer <= LEGACY_STREAM && !draft->array.stream && locate(&draft->array)) return adopt_later(type, draft, owner, producer);
    return adopt_device(type, draft, owner, producer);
}

/* Arguments: type, object, stream, transfer, wait. Shares what object's
 * __cuda_array_interface__ describes. None if it has none of the simplest form. */
PyObject *adopt_cuda(PyObject *module, PyObject *const *arguments, Py_ssize_t n) {
    Draft draft;
    uint64_t producer;
    (void)module;
    if (n != 5) return PyErr_Format(PyExc_TypeError, "adopt_cuda takes 5 arguments, got %zd", n);
    if (!is_array_type(arguments[0])) return NULL;
    draft_start(&draft);
    draft.array.stream = PyLong_AsUnsignedLongLong(arguments[2]);
    draft.array.transfer = (int32_t)PyLong_AsLong(arguments[3]);
    int wait = PyObject_IsTrue(arguments[4]);
    if (wait < 0 || PyErr_Occurred()) return NULL;
    PyObject *interface = PyObject_GetAttr(arguments[1], interface_name);
    /* A key's __eq__ may change a dictionary that somebody else knows, too. */
    if (interface && PyDict_CheckExact(interface) && Py_REFCNT(interface) > 1) {
        PyObject *own = PyDict_Copy(interface);
        Py_DECREF(interface);
        interface = own;
    }
    if (!interface || !PyDict_CheckExact(interface) || PyType_Check(arguments[1]) || !read_plain(interface, &draft, &producer)) {
        Py_XDECREF(interface);
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    Py_DECREF(interface);
    Owner *owner = owner_new(arguments[1], NULL);
    return owner ? adopt_cuda_memory((PyTypeObject *)arguments[0], &draft, owner, wait ? producer : 0) : NULL;
}
