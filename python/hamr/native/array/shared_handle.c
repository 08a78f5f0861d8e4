#include "array/shared_handle.h"

#include <string.h>

#include "array/share_socket.h"
#include "base/containers.h"
#include "base/heap_type.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/core.h"

typedef struct {
    PyObject_HEAD
    PyObject *frame; /* bytes; NULL: it was closed */
    int32_t descriptors[HAMR_FRAME_DESCRIPTORS], count;
    int32_t users;       /* who is about to send the descriptors, which are closed after that */
    uint64_t generation; /* of the process that they are in */
    uint64_t lent;       /* the copy of the core that has lent memory by it, or 0 */
    char copied, read_only;
} Handle;

static PyTypeObject *handle_type;

int is_shared_handle_type(PyObject *type) {
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, handle_type)) return 1;
    PyErr_Format(PyExc_TypeError, "type is %R: accepted is one of hamr.SharedHandle's", type);
    return 0;
}

PyObject *shared_handle_new(PyTypeObject *type, const hamr_sharing *sharing, uint64_t generation) {
    PyObject *frame = PyBytes_FromStringAndSize((const char *)sharing->frame, (Py_ssize_t)sharing->bytes);
    Handle *self = frame ? type_allocate(type) : NULL;
    if (!self) {
        Py_XDECREF(frame);
        close_descriptors(sharing->descriptors, sharing->count);
        return NULL;
    }
    self->frame = frame;
    self->lent = generation;
    self->count = sharing->count;
    for (int32_t i = 0; i < sharing->count; i++) self->descriptors[i] = sharing->descriptors[i];
    self->copied = (char)(sharing->copied != 0);
    self->read_only = (char)(sharing->read_only != 0);
    return (PyObject *)self;
}

/* SharedHandle(frame, descriptors, copied, readonly): a tuple, whose descriptors it takes over. */
static PyObject *handle_make(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(names)) {
    PyObject *frame, *numbers;
    hamr_sharing sharing;
    int copied, read_only;
    if (!PyArg_ParseTuple(arguments, "SO!pp:SharedHandle", &frame, &PyTuple_Type, &numbers, &copied, &read_only))
        return NULL;
    Py_ssize_t n = PyTuple_Size(numbers), bytes = PyBytes_Size(frame);
    if (n > HAMR_FRAME_DESCRIPTORS || bytes > HAMR_LONGEST_FRAME)
        return PyErr_Format(PyExc_ValueError,
                            "a handle of %zd bytes and %zd descriptors: accepted are at most %d and %d", bytes, n,
                            HAMR_LONGEST_FRAME, HAMR_FRAME_DESCRIPTORS);
    for (Py_ssize_t i = 0; i < n; i++)
        if (read_int32(PyTuple_GetItem(numbers, i), "a descriptor", &sharing.descriptors[i]) < 0) return NULL;
    sharing.count = (int32_t)n;
    sharing.copied = copied;
    sharing.read_only = read_only;
    sharing.bytes = bytes;
    memcpy(sharing.frame, PyBytes_AsString(frame), (size_t)bytes);
    return shared_handle_new(type, &sharing, 0);
}

/* Of a forked child's copy nobody is about to use anything: its threads are the parent's. */
static void end_when_unused(Handle *self) {
    if (self->frame || (self->users && self->generation == core_generation)) return;
    int32_t count = self->count;
    self->count = self->users = 0;
    close_descriptors(self->descriptors, count);
    const hamr_functions *functions = self->lent == core_generation ? core_functions() : NULL;
    /* With the GIL, so that no other thread of Python's forks meanwhile. */
    if (count && functions) functions->prepare_share();
}

static int begin(Handle *self) {
    if (!self->frame) return RAISE(PyExc_ValueError, "the handle was closed");
    if (self->generation != core_generation) self->users = 0;
    self->generation = core_generation;
    self->users++;
    return 0;
}

static void end(Handle *self) {
    if (self->users && self->generation == core_generation) self->users--;
    end_when_unused(self);
}

static PyObject *handle_close(PyObject *object, PyObject *Py_UNUSED(unused)) {
    Handle *self = (Handle *)object;
    PyObject *frame = self->frame;
    self->frame = NULL;
    end_when_unused(self);
    Py_XDECREF(frame);
    Py_RETURN_NONE;
}

static void handle_dealloc(PyObject *object) {
    Handle *self = (Handle *)object;
    PyObject *frame = self->frame;
    self->frame = NULL;
    self->users = 0;
    end_when_unused(self);
    Py_XDECREF(frame);
    type_free(object);
}

static PyObject *handle_begin(PyObject *object, PyObject *Py_UNUSED(unused)) {
    Handle *self = (Handle *)object;
    if (begin(self) < 0) return NULL;
    PyObject *numbers = PyTuple_New(self->count), *both = NULL;
    for (int32_t i = 0; numbers && i < self->count; i++)
        tuple_put(&numbers, i, PyLong_FromLong(self->descriptors[i]));
    if (numbers && self->frame) both = PyTuple_Pack(2, self->frame, numbers);
    Py_XDECREF(numbers);
    if (!both) end(self);
    return both;
}

static PyObject *handle_end(PyObject *object, PyObject *Py_UNUSED(unused)) {
    end((Handle *)object);
    Py_RETURN_NONE;
}

/* What is left of a frame of which so many bytes have been sent; the handle itself where nothing was. */
static PyObject *left_of(PyObject *self, PyObject *frame, ssize_t sent) {
    if (sent < 0) return Py_NewRef(self);
    return PyBytes_FromStringAndSize(PyBytes_AsString(frame) + sent, PyBytes_Size(frame) - sent);
}

static PyObject *handle_send(PyObject *object, PyObject *connection) {
    Handle *self = (Handle *)object;
    int type, number;
    if (begin(self) < 0) return NULL;
    number = socket_of(connection, &type);
    PyObject *frame = number < 0 ? NULL : Py_XNewRef(self->frame); /* asking may have closed the handle */
    ssize_t sent = -1;
    if (frame) {
        const char *bytes = PyBytes_AsString(frame);
        Py_ssize_t size = PyBytes_Size(frame);
        Py_BEGIN_ALLOW_THREADS
        sent = frame_send(number, bytes, size, self->descriptors, self->count);
        Py_END_ALLOW_THREADS
    }
    end(self);
    PyObject *left = left_of(object, frame, sent);
    Py_XDECREF(frame);
    return left;
}

static PyObject *get_closed(PyObject *object, void *Py_UNUSED(unused)) {
    return PyBool_FromLong(!((Handle *)object)->frame);
}

static PyObject *get_copied(PyObject *object, void *Py_UNUSED(unused)) {
    return PyBool_FromLong(((Handle *)object)->copied);
}

static PyObject *get_read_only(PyObject *object, void *Py_UNUSED(unused)) {
    return PyBool_FromLong(((Handle *)object)->read_only);
}

static PyMethodDef methods[] = {
    {"close", handle_close, METH_NOARGS, "Let go of it; closing twice is harmless. What was opened by it lasts."},
    {"_begin", handle_begin, METH_NOARGS, "_begin() -> (frame, descriptors), which are not closed before _end()."},
    {"_end", handle_end, METH_NOARGS, "_end(): what _begin() has begun is over."},
    {"_send", handle_send, METH_O,
     "_send(socket) -> bytes: what is left to be sent of the frame, whose first byte has the descriptors with it; the "
     "handle itself where nothing was sent."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"_closed", get_closed, NULL, NULL, NULL},
    {"copied", get_copied, NULL, "Whether receivers get a copy of the elements, in memory that nobody else has.", NULL},
    {"readonly", get_read_only, NULL, "Whether they get them for reading only.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, handle_make},
    {Py_tp_dealloc, handle_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc, "A frame, and the descriptors that go with it."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.SharedHandle",
    .basicsize = sizeof(Handle),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int shared_handle_setup(PyObject *module) {
    return type_add(module, &handle_type, &spec, NULL);
}
