#include "scheduling/placed.h"

#include <string.h>

#include "base/heap_type.h"
#include "core/core.h"
#include "core/errors.h"
#include "memory/stream_life.h"

/* 0, or -1 with an exception. */
static int number_of(PyObject *stream, const char *name, long long *number) {
    PyObject *value = PyObject_GetAttrString(stream, name);
    if (!value) return -1;
    unsigned long long bits = PyLong_AsUnsignedLongLongMask(value);
    Py_DECREF(value);
    *number = (long long)bits;
    return bits == (unsigned long long)-1 && PyErr_Occurred() ? -1 : 0;
}

/* Whether hamr has made a stream. */
static int is_own(PyObject *stream) {
    PyObject *life = stream_life_of(stream);
    int own = life && stream_life_made(life);
    Py_XDECREF(life);
    return own;
}

int place_of_stream(StreamPlace *place, PyObject *stream) {
    long long handle, device, generation;
    if (number_of(stream, "_value", &handle) < 0 || number_of(stream, "_device", &device) < 0 ||
        number_of(stream, "_generation", &generation) < 0)
        return -1;
    PyObject *name = PyObject_GetAttrString(stream, "_backend");
    if (!name) return -1;
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(name, &length);
    if (text && (size_t)length >= sizeof place->backend)
        PyErr_Format(PyExc_ValueError, "backend is %R: its name is too long", name);
    if (text && (size_t)length < sizeof place->backend) memcpy(place->backend, text, (size_t)length + 1);
    Py_DECREF(name);
    if (PyErr_Occurred()) return -1;
    place->handle = (uint64_t)handle;
    place->generation = (uint64_t)generation;
    place->device = (int32_t)device;
    place->own = (char)is_own(stream);
    place->stream = Py_NewRef(stream);
    return 0;
}

int place_usable(const StreamPlace *place, const hamr_functions **functions) {
    if (place->generation != core_generation) return core_forked();
    *functions = core_functions();
    return *functions ? 0 : core_forked();
}

void place_share(StreamPlace *place, const StreamPlace *other) {
    *place = *other;
    Py_INCREF(place->stream);
}

/* To ask the driver by way of the core takes several times as long. */
const hamr_devices *place_driver(const StreamPlace *place, const hamr_functions *functions) {
    const hamr_devices *devices = functions->devices;
    if (strcmp(place->backend, "cuda") != 0 || place->device >= devices->cuda_count) return NULL;
    return devices->cuda_contexts && devices->cuda_contexts[place->device] ? devices : NULL;
}

int place_same_device(const StreamPlace *one, const StreamPlace *other) {
    return one->device == other->device && strcmp(one->backend, other->backend) == 0;
}

static PyObject *get_place(PyObject *self, void *Py_UNUSED(closure)) {
    const StreamPlace *place = &((Placed *)self)->place;
    return PyUnicode_FromFormat("%s:%d", place->backend, (int)place->device);
}

static PyObject *get_backend(PyObject *self, void *Py_UNUSED(closure)) {
    return PyUnicode_FromString(((Placed *)self)->place.backend);
}

static PyObject *get_device(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromLong(((Placed *)self)->place.device);
}

static PyObject *get_stream(PyObject *self, void *Py_UNUSED(closure)) {
    PyObject *stream = ((Placed *)self)->place.stream;
    return Py_NewRef(stream ? stream : Py_None);
}

static PyGetSetDef attributes[] = {
    {"place", get_place, NULL, "The device, as in \"cuda:0\".", NULL},
    {"backend", get_backend, NULL, "Whose device it is, as in \"cuda\".", NULL},
    {"device", get_device, NULL, "The device's number.", NULL},
    {"stream", get_stream, NULL, "The hamr.Stream that the work is on.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

int placed_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((Placed *)object)->place.stream);
    return 0;
}

static void placed_dealloc(PyObject *object) {
    PyObject_GC_UnTrack(object);
    Py_CLEAR(((Placed *)object)->place.stream);
    type_free(object);
}

/* Token(stream) */
static PyObject *token_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    PyObject *stream;
    static char *keywords[] = {"stream", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "O:Token", keywords, &stream)) return NULL;
    Placed *self = type_allocate(type);
    if (!self) return NULL;
    /* The number may be no stream's, or another device's. */
    PyObject *checked = PyObject_CallMethod(stream, "_checked", NULL);
    int failed = !checked || place_of_stream(&self->place, stream) < 0;
    Py_XDECREF(checked);
    if (failed) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Format(PyExc_TypeError, "stream is %R: accepted is a hamr.Stream", stream);
        Py_CLEAR(self);
    } else if (self->place.device < 0) {
        PyErr_Format(PyExc_ValueError,
                     "stream is %R, of which device cannot be told: accepted is one as hamr.Stream(device=0)", stream);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyTypeObject *base, *token;

PyTypeObject *placed_type(void) { return base; }

static PyType_Slot base_slots[] = {
    {Py_tp_getset, attributes},
    {Py_tp_dealloc, placed_dealloc},
    {Py_tp_traverse, placed_traverse},
    {Py_tp_doc, "What has a device, and a stream there."},
    {0, NULL},
};

static PyType_Spec base_spec = {
    .name = "hamr._native.Placed",
    .basicsize = sizeof(Placed),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = base_slots,
};

static PyType_Slot token_slots[] = {
    {Py_tp_new, token_new},
    {Py_tp_dealloc, placed_dealloc},
    {Py_tp_traverse, placed_traverse},
    {Py_tp_doc, "Token(stream): what a device chooser has chosen; the stream must be on a device that is known."},
    {0, NULL},
};

static PyType_Spec token_spec = {
    .name = "hamr._native.Token",
    .basicsize = sizeof(Placed),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = token_slots,
};

int placed_setup(PyObject *module) {
    return type_add(module, &base, &base_spec, NULL) < 0 ? -1 : type_add(module, &token, &token_spec, base);
}
