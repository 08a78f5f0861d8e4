/* Buffer(…), as it is called most: what is plain is read here, and all else, whatever is wrong
 * included, by the constructor that Python has given. */
#include "array/construct.h"

#include "array/adopt.h"
#include "array/array.h"
#include "array/copy.h"
#include "array/create.h"
#include "base/containers.h"
#include "base/elements.h"
#include "base/python.h"
#include "core/core.h"
#include "memory/stream_life.h"
#include "plain/allocators.h"
#include "plain/layout.h"

#define SYNC_HOST 1 /* the transfer mode of who names none */

PyObject *blocks_entered;

static PyObject *constructor;    /* what reads everything */
static PyObject *elements;       /* the numbers of element types that were named before, by name */
static PyObject *allocators;     /* the members of hamr.Allocator by name */
static PyTypeObject *allocator_type;

enum { SHAPE, DTYPE, ALLOCATOR, POSITIONAL, FILL = POSITIONAL, DEVICE, STREAM, ARGUMENTS };
static const char *const texts[ARGUMENTS] = {"shape", "dtype", "allocator", "fill", "device", "stream"};
static PyObject *words[ARGUMENTS];

int construct_setup(PyObject *module) {
    if (intern_names(words, texts, ARGUMENTS) < 0) return -1;
    if (!blocks_entered && !(blocks_entered = PyList_New(0))) return -1;
    return PyModule_AddObjectRef(module, "blocks_entered", blocks_entered);
}

/* 0, and an exception perhaps, for what is not read here. */
static int read_arguments(PyObject *arguments, PyObject *names, PyObject **given) {
    Py_ssize_t n = PyTuple_Size(arguments), at = 0;
    PyObject *name, *value;
    if (n > POSITIONAL) return 0;
    for (Py_ssize_t i = 0; i < n; i++) given[i] = PyTuple_GetItem(arguments, i);
    while (names && PyDict_Next(names, &at, &name, &value)) {
        int i = 0;
        while (i < ARGUMENTS && words[i] != name) i++;
        if (i == ARGUMENTS || given[i]) return 0;
        given[i] = value;
    }
    return given[SHAPE] != NULL;
}

static int read_size(PyObject *value, int64_t *size) {
    if (!PyLong_CheckExact(value)) return 0;
    *size = PyLong_AsLongLong(value);
    return *size >= 0;
}

static int read_shape(PyObject *shape, hamr_array *array) {
    array->ndim = 1;
    if (!PyTuple_CheckExact(shape)) return read_size(shape, array->shape);
    Py_ssize_t n = PyTuple_Size(shape);
    if (n > HAMR_MAX_DIMENSIONS) return 0;
    array->ndim = (int32_t)n;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!read_size(PyTuple_GetItem(shape, i), &array->shape[i])) return 0;
    return 1;
}

static int read_known(PyObject *known, PyObject *key, int32_t *number) {
    PyObject *found = PyDict_GetItemWithError(known, key);
    if (!found) return 0;
    *number = (int32_t)PyLong_AsLong(found);
    return *number >= 0;
}

static int read_element(PyObject *dtype, int32_t *element) {
    if (dtype) return read_known(elements, dtype, element);
    *element = HAMR_FLOAT64;
    return 1;
}

static int read_allocator(PyObject *allocator, int32_t *number) {
    *number = HAMR_ALLOCATOR_MALLOC;
    if (!allocator || allocator == Py_None) return 1;
    if (PyUnicode_CheckExact(allocator)) return read_known(allocators, allocator, number);
    if (Py_TYPE(allocator) != allocator_type) return 0;
    *number = (int32_t)PyLong_AsLong(allocator);
    return *number >= 0;
}

/* A device alone, which says what the allocator is. */
static int read_device(PyObject *device, PyObject *allocator, hamr_array *array) {
    if (!device || device == Py_None) return 1;
    if (allocator && allocator != Py_None) return 0;
    int64_t number = -1;
    if (PyUnicode_CheckExact(device)) {
        if (PyUnicode_CompareWithASCIIString(device, "cuda") != 0) return 0;
    } else if (!read_size(device, &number) || number > INT32_MAX) {
        return 0;
    }
    array->allocator = HAMR_ALLOCATOR_CUDA;
    array->device = (int32_t)number;
    return 1;
}

/* A stream that hamr has made, for memory of its device. */
static int read_stream(PyObject *stream, hamr_array *array, PyObject **life) {
    int32_t device = -1;
    if (!stream || stream == Py_None) return 1;
    if (!is_of_cuda(array->allocator) || memory_kind(array->allocator) != HAMR_DEVICE_ONLY) return 0;
    *life = stream_life_of(stream);
    if (!*life || !(array->stream = stream_life_of_cuda(*life, &device))) return 0;
    place_array(array, core_functions()->devices);
    return array->device == device;
}

static int read_fill(PyObject *fill, unsigned char *bytes, int32_t *element) {
    if (!PyFloat_CheckExact(fill) && !PyLong_CheckExact(fill) && !PyBool_Check(fill) && !PyComplex_CheckExact(fill))
        return 0;
    return element_from_scalar(fill, bytes, element) > 0;
}

/* Makes the draft what is asked for, and *order and *life what keeps its stream; 0, and an exception perhaps, for what
 * is not read here. */
static int read_plain(PyObject *arguments, PyObject *names, Draft *draft, unsigned char *bytes, int32_t *element,
                      int *filled, PyObject **order, PyObject **life) {
    PyObject *given[ARGUMENTS] = {NULL};
    hamr_array *array = &draft->array;
    if (PyList_Size(blocks_entered) != 0 || !read_arguments(arguments, names, given)) return 0;
    *filled = given[FILL] && given[FILL] != Py_None;
    array->device = HAMR_HOST_DEVICE;
    array->transfer = SYNC_HOST;
    if (!read_shape(given[SHAPE], array) || !read_element(given[DTYPE], &array->element) ||
        !read_allocator(given[ALLOCATOR], &array->allocator) ||
        !read_device(given[DEVICE], given[ALLOCATOR], array) || (*filled && !read_fill(given[FILL], bytes, element)) ||
        !read_stream(given[STREAM], array, life))
        return 0;
    if (*life) *order = Py_NewRef(given[STREAM]);
    return 1;
}

static PyObject *in_python(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    Py_ssize_t n = PyTuple_Size(arguments);
    PyObject *all = PyTuple_New(n + 1);
    if (!all) return NULL;
    PyTuple_SetItem(all, 0, Py_NewRef((PyObject *)type));
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(arguments, i)));
    PyObject *made = PyObject_Call(constructor, all, names);
    Py_DECREF(all);
    return made;
}

static PyObject *refuse(PyTypeObject *type) {
    PyObject *name = type == array_type ? PyUnicode_FromString("hamr._native.Array") : PyType_GetName(type);
    if (name) PyErr_Format(PyExc_TypeError, "cannot create '%U' instances", name);
    Py_XDECREF(name);
    return NULL;
}

PyObject *array_construct(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    PyTypeObject *buffer = constructor ? copy_type() : NULL;
    if (!buffer || (type != buffer && !PyType_IsSubtype(type, buffer))) return PyErr_Occurred() ? NULL : refuse(type);
    Draft draft;
    unsigned char bytes[16];
    int32_t element = 0;
    int filled = 0;
    PyObject *order = NULL, *life = NULL, *made = NULL;
    draft_start(&draft);
    if (!core_functions() || !read_plain(arguments, names, &draft, bytes, &element, &filled, &order, &life) ||
        !core_functions()) {
        PyErr_Clear();
        made = in_python(type, arguments, names);
    } else if (create_draft(&draft, filled ? bytes : NULL, element) == 0) {
        made = draft_finish(type, &draft, NULL);
        if (made && life) array_follow((Array *)made, &(Array){.order = order, .life = life});
    }
    Py_XDECREF(order);
    Py_XDECREF(life);
    return made;
}

/* set_constructor(constructor, elements, kind, allocators) */
static PyObject *set_constructor(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *given[4];
    if (!PyArg_ParseTuple(arguments, "OO!O!O!", &given[0], &PyDict_Type, &given[1], &PyType_Type, &given[2],
                          &PyDict_Type, &given[3]))
        return NULL;
    PyObject **places[] = {&constructor, &elements, (PyObject **)&allocator_type, &allocators};
    for (int i = 0; i < 4; i++) replace_reference(places[i], Py_NewRef(given[i]));
    Py_RETURN_NONE;
}

PyMethodDef construct_functions[] = {
    {"set_constructor", set_constructor, METH_VARARGS,
     "set_constructor(constructor, elements, kind, allocators): what makes buffers of all arguments, and what is "
     "known of those that C reads itself: "
     "numbers of element types by name, and hamr.Allocator and its members by name."},
    {NULL, NULL, 0, NULL},
};
