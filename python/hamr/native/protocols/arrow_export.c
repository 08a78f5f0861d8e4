/* __arrow_c_array__ and __arrow_c_device_array__: arrays of one dimension as Arrow's structs, in capsules. */
#include "protocols/arrow_export.h"

#include <stdlib.h>

#include "array/access.h"
#include "array/array.h"
#include "array/snapshot.h"
#include "array/wait.h"
#include "base/elements.h"
#include "base/python.h"
#include "memory/owner.h"
#include "plain/layout.h"
#include "plain/memory.h"
#include "protocols/arrow.h"
#include "protocols/arrow_layout.h"
#include "protocols/dlpack_device.h"

/* What a released array gives up. The release comes from any thread, without the GIL,
 * perhaps after the interpreter's end. */
typedef struct {
    Owner *owner;
    const void *buffers[2];
} Exported;

static void release_array(struct ArrowArray *array) {
    Exported *exported = array->private_data;
    array->release = NULL;
    owner_finished_soon(exported->owner);
    free(exported);
}

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

/* What nobody moved out of a capsule ends with it. */
static void end_schema(PyObject *capsule) {
    Raised raised = raised_take();
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, ARROW_SCHEMA);
    if (schema && schema->release) schema->release(schema);
    free(schema);
    raised_restore(raised);
}

static void end_array(PyObject *capsule) {
    Raised raised = raised_take();
    /* A device array begins with an array. */
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    if (array && array->release) array->release(array);
    free(array);
    raised_restore(raised);
}

static PyObject *schema_capsule(const hamr_array *array) {
    struct ArrowSchema *schema = malloc(sizeof *schema);
    if (!schema) return PyErr_NoMemory();
    *schema = (struct ArrowSchema){.format = arrow_format(array->element), .name = "", .flags = ARROW_FLAG_NULLABLE,
                                   .release = release_schema};
    PyObject *capsule = PyCapsule_New(schema, ARROW_SCHEMA, end_schema);
    if (!capsule) free(schema);
    return capsule;
}

/* ArrowDeviceArray's numbers for the place of an array: those of DLPack. Page-locked
 * memory is no device's, but consumers make the device of that number current. */
static int place(const hamr_array *array, char for_space, struct ArrowDeviceArray *into) {
    into->device_type = dlpack_device_type(array, for_space);
    into->device_id = into->device_type == ARROW_DEVICE_CPU ? -1 : array->device < 0 ? 0 : array->device;
    if (into->device_type) return 0;
    return RAISE(PyExc_BufferError,
                 "Arrow has no number for the device of this memory: get_host_accessible() brings it to the host");
}

static PyObject *array_capsule(Array *source, char for_space, int of_device) {
    struct ArrowDeviceArray *device_array = calloc(1, sizeof *device_array);
    Exported *exported = malloc(sizeof *exported);
    if (!device_array || !exported) PyErr_NoMemory();
    else if (!of_device || place(&source->array, for_space, device_array) == 0) {
        PyObject *capsule = PyCapsule_New(device_array, of_device ? ARROW_DEVICE_ARRAY : ARROW_ARRAY, end_array);
        Owner *owner = capsule ? owner_new((PyObject *)source, NULL) : NULL;
        if (owner) {
            if (source->block) memory_tell_address(&source->block->memory);
            *exported = (Exported){owner, {NULL, (const void *)(uintptr_t)source->array.pointer}};
            device_array->array = (struct ArrowArray){
                .length = source->array.shape[0], .n_buffers = 2, .buffers = exported->buffers,
                    .release = release_array, .private_data = exported};
            return capsule;
        }
        if (capsule) device_array = NULL; /* the capsule's */
        Py_XDECREF(capsule);
    }
    free(device_array);
    free(exported);
    return NULL;
}

static int check(const hamr_array *array, int of_device) {
    if (array->element == HAMR_BOOL)
        PyErr_SetString(PyExc_TypeError,
                        "element type |b1 cannot be shared with Arrow, which packs eight bool in a byte: "
                        "astype(\"uint8\") makes a buffer that can");
    else if (!arrow_format(array->element))
        PyErr_Format(PyExc_TypeError,
                     "element type %s has no format in Arrow: accepted are int8 ... int64, uint8 ... uint64, float16, "
                     "float32 and float64, which astype() makes",
                     element_label(array->element));
    else if (array->ndim == 0)
        PyErr_SetString(PyExc_ValueError,
                        "the buffer has no dimension, an Arrow array has one: buf[None] has one, too");
    else if (array->ndim > 1)
        PyErr_Format(PyExc_ValueError,
                     "the buffer has %d dimensions, an Arrow array has one: share a part of it such as buf[0], or "
                     "buf.reshape(-1)", array->ndim);
    else if (!array_contiguous(array, 0))
        PyErr_SetString(PyExc_ValueError,
                        "the buffer's elements have gaps between them, those of an Arrow array have none: copy() "
                        "makes a buffer without");
    else if (!of_device && !(array->flags & HAMR_HOST_REACHABLE))
        PyErr_SetString(PyExc_ValueError,
                        "the host does not reach this memory: get_host_accessible() brings it there, "
                        "__arrow_c_device_array__() tells of it where it is");
    else return 0;
    return -1;
}

/* The array as it is now, with no work pending on its memory: neither interface names
 * a stream, and that with an event is not used, so that whoever reads need not wait. */
static Array *exportable(PyObject *object, int of_device) {
    Array *self = (Array *)array_snapshot((Array *)object, array_type);
    if (!self || !array_may_be_pending(self)) {
        if (self && check(&self->array, of_device) < 0) Py_CLEAR(self);
        return self;
    }
    Array *ready = NULL;
    if (array_usable(self) == 0 && check(&self->array, of_device) == 0) {
        if (self->array.flags & HAMR_HOST_REACHABLE) ready = array_settled(self);
        else if (array_wait(self) == 0) ready = (Array *)Py_NewRef((PyObject *)self);
    }
    Py_DECREF(self);
    return ready;
}

static PyObject *capsules(PyObject *object, int of_device) {
    char for_space = ((Array *)object)->for_space;
    Array *source = exportable(object, of_device);
    if (!source) return NULL;
    PyObject *array = array_capsule(source, for_space, of_device), *schema = array ? schema_capsule(&source->array)
        : NULL;
    Py_DECREF(source);
    PyObject *pair = schema ? PyTuple_Pack(2, schema, array) : NULL;
    Py_XDECREF(schema);
    Py_XDECREF(array);
    return pair;
}

/* requested_schema may be met or not, as the specification has it: elements are shared
 * as they are. Keywords of later versions are ignored where they ask for nothing. */
static int check_arguments(const char *method, PyObject *const *arguments, Py_ssize_t n, PyObject *names, int later) {
    PyObject *requested = n ? arguments[0] : NULL;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (n > 1)
        return RAISE(PyExc_TypeError, "%s() takes at most one positional argument, requested_schema, got %zd", method,
                     n);
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i), *value = arguments[n + i];
        if (PyUnicode_CompareWithASCIIString(name, "requested_schema") == 0) {
            if (requested) PyErr_Format(PyExc_TypeError, "%s() got requested_schema twice", method);
            else requested = value;
        } else if (!later) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R: accepted is requested_schema",
                         method, name);
        } else if (value != Py_None) {
            PyErr_Format(PyExc_NotImplementedError,
                         "%s() got the keyword argument %R, which it does not know, as %R: accepted is None", method,
                         name, value);
        }
        if (PyErr_Occurred()) return -1;
    }
    if (!requested || requested == Py_None || PyCapsule_IsValid(requested, ARROW_SCHEMA)) return 0;
    return RAISE(PyExc_TypeError, "requested_schema is %R: accepted are None and a capsule of the name " ARROW_SCHEMA,
                 requested);
}

PyObject *array_arrow(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names) {
    return check_arguments("__arrow_c_array__", arguments, n, names, 0) < 0 ? NULL : capsules(self, 0);
}

PyObject *array_arrow_device(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names) {
    return check_arguments("__arrow_c_device_array__", arguments, n, names, 1) < 0 ? NULL : capsules(self, 1);
}
