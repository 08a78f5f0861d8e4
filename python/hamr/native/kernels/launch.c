#include "kernels/launch.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "array/array.h"
#include "base/containers.h"
#include "base/python.h"

/* What the types are of that arguments have had, as the hook has said: those that are what their bytes are, that have
 * __cuda_array_interface__, that give a hamr array as their attribute _kernel_argument, and that are hamr arrays. */
enum { UNKNOWN, BYTES, INTERFACE, GIVES_ARRAY, ARRAY, KINDS };
enum { TABLE = 128 };
static struct {
    PyTypeObject *type; /* a reference */
    int kind;
} known[TABLE];

static PyObject *argument_hook;
enum { INTERFACE_NAME, DATA_NAME, STREAM_NAME, MASK_NAME, ATTRIBUTE_NAME, NAMES };
static PyObject *names[NAMES];

int launch_setup(void) {
    static const char *const texts[NAMES] = {
        [INTERFACE_NAME] = "__cuda_array_interface__", [DATA_NAME] = "data", [STREAM_NAME] = "stream",
            [MASK_NAME] = "mask",
        [ATTRIBUTE_NAME] = "_kernel_argument",
    };
    return intern_names(names, texts, NAMES);
}

static unsigned place_of(const PyTypeObject *type) {
    return (unsigned)((uintptr_t)type >> 4 ^ (uintptr_t)type >> 11) % TABLE;
}

static int kind_of(const PyTypeObject *type) {
    for (unsigned at = place_of(type), i = 0; i < TABLE && known[at].type; i++, at = (at + 1) % TABLE)
        if (known[at].type == type) return known[at].kind;
    return UNKNOWN;
}

/* Of types beyond the table's room the hook is asked each time. */
static void remember(PyTypeObject *type, int kind) {
    for (unsigned at = place_of(type), i = 0; i < TABLE / 2; i++, at = (at + 1) % TABLE) {
        if (known[at].type && known[at].type != type) continue;
        if (!known[at].type) Py_INCREF((PyObject *)type);
        known[at].type = type;
        known[at].kind = kind;
        return;
    }
}

int launch_refuse(const Launch *launch, Py_ssize_t i, PyObject *type, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyObject *what = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    if (what) PyErr_Format(type, "argument %zd of %U is %U", i, launch->name, what);
    Py_XDECREF(what);
    return -1;
}

/* Room for bytes that stay where they are until the end of the launch; NULL with an exception. */
static void *reserve(Launch *launch, size_t size) {
    size_t from = (launch->used + 15) & ~(size_t)15;
    if (size <= INLINE_BYTES && from + size <= INLINE_BYTES) {
        launch->used = from + size;
        return launch->bytes + from;
    }
    char *room = PyMem_Malloc(size + 1);
    if (!room) return PyErr_NoMemory();
    return launch->more[launch->more_count++] = room;
}

/* 0, or -1 with an exception. */
static int read_bytes(Launch *launch, Py_ssize_t i, PyObject *object) {
    Argument *argument = &launch->arguments[i];
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0) return -1;
    argument->value = view.len <= INT32_MAX ? reserve(launch, (size_t)view.len) : NULL;
    if (argument->value) {
        memcpy(argument->value, view.buf, (size_t)view.len);
        argument->size = (int32_t)view.len;
    } else if (!PyErr_Occurred()) {
        launch_refuse(launch, i, PyExc_ValueError, "of %zd bytes: accepted are values that a kernel can have",
                      view.len);
    }
    PyBuffer_Release(&view);
    return argument->value ? 0 : -1;
}

static int read_unsigned(PyObject *number, uint64_t *value) {
    if (!number || !PyLong_CheckExact(number)) return 0;
    *value = PyLong_AsUnsignedLongLong(number);
    if (*value != (uint64_t)-1 || !PyErr_Occurred()) return 1;
    PyErr_Clear();
    return 0;
}

/* 0: it was read; 1: it is not of the plain form; -1 with an exception. */
static int read_interface(Launch *launch, Py_ssize_t i, PyObject *object) {
    Argument *argument = &launch->arguments[i];
    PyObject *interface = PyObject_GetAttr(object, names[INTERFACE_NAME]);
    if (!interface && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear(); /* as tensors of the host's */
        return 1;
    }
    if (!interface) return -1;
    PyObject *data = PyDict_CheckExact(interface) ? PyDict_GetItemWithError(interface, names[DATA_NAME]) : NULL;
    PyObject *mask = data ? PyDict_GetItemWithError(interface, names[MASK_NAME]) : NULL,
        *stream = data ? PyDict_GetItemWithError(interface, names[STREAM_NAME]) : NULL;
    int plain = data && PyTuple_CheckExact(data) && PyTuple_Size(data) == 2 && (!mask || mask == Py_None) &&
        PyBool_Check(PyTuple_GetItem(data, 1)) &&
                read_unsigned(PyTuple_GetItem(data, 0), &argument->pointer) &&
                (!stream || stream == Py_None ||
                 (read_unsigned(stream, &argument->producer) && argument->producer != 0));
    int read_only = plain && PyTuple_GetItem(data, 1) == Py_True;
    Py_DECREF(interface);
    if (PyErr_Occurred()) return -1;
    if (!plain) return 1;
    if (read_only && !argument->reads)
        return launch_refuse(launch, i, PyExc_ValueError,
                             "%R, which is read-only: accepted is a writable array, or In(array) where the kernel "
                             "only reads it", object);
    argument->foreign = 1;
    argument->value = &argument->pointer;
    argument->size = sizeof argument->pointer;
    return 0;
}

static int read_array(Launch *launch, Py_ssize_t i, PyObject *object) {
    Argument *argument = &launch->arguments[i];
    if (!is_array(object)) return -1;
    argument->array = (Array *)Py_NewRef(object);
    argument->size = sizeof argument->pointer;
    return 0;
}

static int read_attribute(Launch *launch, Py_ssize_t i, PyObject *object) {
    PyObject *array = PyObject_GetAttr(object, names[ATTRIBUTE_NAME]);
    int read = array ? read_array(launch, i, array) : -1;
    Py_XDECREF(array);
    return read;
}

static int read_as(Launch *launch, Py_ssize_t i, PyObject *object, int kind) {
    switch (kind) {
    case BYTES: return read_bytes(launch, i, object);
    case GIVES_ARRAY: return read_attribute(launch, i, object);
    case ARRAY: return read_array(launch, i, object);
    default: return read_interface(launch, i, object);
    }
}

static int read_number(Argument *argument, PyObject *object);

/* Asks Python what an object is: (kind, object, reads, typical, device). typical: others of the type are of
 * that kind, too. Kind UNKNOWN is an int, or what is asked again once the device is known, which is the
 * one said if nothing else decides. */
static int read_other(Launch *launch, Py_ssize_t i, PyObject *object, int odd) {
    Argument *argument = &launch->arguments[i];
    int kind, reads, typical, device, read;
    PyObject *given, *said = PyObject_CallFunction(argument_hook, "nOOi", i, launch->name, object, odd);
    if (!said) return -1;
    if (!PyArg_ParseTuple(said, "iOppi", &kind, &given, &reads, &typical, &device)) read = -1;
    else {
        argument->reads |= (char)reads;
        if (kind > UNKNOWN && kind < KINDS) {
            if (typical) remember(Py_TYPE(object), kind);
            read = read_as(launch, i, given, kind);
        } else if (PyLong_CheckExact(given)) {
            read = read_number(argument, given);
        } else {
            argument->pending = Py_NewRef(given);
            argument->device = device;
            read = 0;
        }
        if (read > 0 && odd)
            read = launch_refuse(launch, i, PyExc_TypeError, "%R, whose __cuda_array_interface__ cannot be read",
                                 object);
    }
    Py_DECREF(said);
    return read > 0 ? read_other(launch, i, object, 1) : read;
}

static int read_number(Argument *argument, PyObject *object) {
    int overflow;
    argument->number = 'i';
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    argument->negative = (char)(overflow < 0 || (!overflow && value < 0));
    argument->pointer = (uint64_t)value;
    argument->size = 0;
    argument->value = &argument->pointer;
    if (overflow == 0) return value == -1 && PyErr_Occurred() ? -1 : 0;
    argument->pointer = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
    if (overflow > 0 && !PyErr_Occurred()) return 0;
    PyErr_Clear();
    argument->number = 'o'; /* no integer of a kernel's has it */
    return 0;
}

static int read_argument(Launch *launch, Py_ssize_t i, PyObject *object) {
    Argument *argument = &launch->arguments[i];
    memset(argument, 0, sizeof *argument);
    argument->device = -1;
    if (PyLong_CheckExact(object)) return read_number(argument, object);
    if (PyFloat_CheckExact(object)) {
        double value = PyFloat_AsDouble(object);
        argument->number = 'f';
        argument->value = &argument->pointer;
        memcpy(&argument->pointer, &value, sizeof value);
        return 0;
    }
    if (PyBool_Check(object)) {
        argument->pointer = object == Py_True;
        argument->value = &argument->pointer;
        argument->size = 1;
        return 0;
    }
    int kind = kind_of(Py_TYPE(object));
    int read = kind == UNKNOWN ? 1 : read_as(launch, i, object, kind);
    return read > 0 ? read_other(launch, i, object, kind == INTERFACE) : read;
}

int launch_read(Launch *launch, PyObject *arguments) {
    Py_ssize_t count = PyTuple_Size(arguments);
    if (count > MOST_ARGUMENTS)
        return RAISE(PyExc_TypeError, "%U is given %zd arguments: accepted are up to %d", launch->name, count,
                     MOST_ARGUMENTS);
    launch->arguments = launch->room;
    if (count > (Py_ssize_t)(sizeof launch->room / sizeof *launch->room))
        launch->arguments = PyMem_Calloc((size_t)count, sizeof *launch->arguments);
    if (!launch->arguments) return PyErr_NoMemory(), -1;
    for (; launch->count < count; launch->count++)
        if (read_argument(launch, launch->count, PyTuple_GetItem(arguments, launch->count)) < 0) {
            launch->count++; /* for its references */
            return -1;
        }
    return 0;
}

/* pending(i, device, name, backend) -> (array, finish) */
int launch_resolve(Launch *launch, const char *backend) {
    for (Py_ssize_t i = 0; i < launch->count; i++) {
        Argument *argument = &launch->arguments[i];
        if (!argument->pending) continue;
        if (!launch->finish && !(launch->finish = PyList_New(0))) return -1;
        PyObject *both = PyObject_CallFunction(argument->pending, "niOs", i, (int)launch->device, launch->name,
                                               backend), *array, *finish;
        int failed = !both || !PyArg_ParseTuple(both, "OO", &array, &finish) ||
            PyList_Append(launch->finish, finish) < 0 || read_array(launch, i, array) < 0;
        Py_XDECREF(both);
        if (failed) return -1;
    }
    return 0;
}

static const char *kinds_of_size(int32_t size) {
    switch (size) {
    case 1: return "numpy.int8(...), numpy.uint8(...)";
    case 2: return "numpy.int16(...), numpy.uint16(...), numpy.float16(...)";
    case 4: return "numpy.int32(...), numpy.uint32(...), numpy.float32(...)";
    case 8: return "numpy.int64(...), numpy.uint64(...), numpy.float64(...)";
    default: return "a NumPy scalar or ctypes value of the parameter's type";
    }
}

static int refuse_number(const Launch *launch, Py_ssize_t i, int32_t size) {
    const char *what = launch->arguments[i].number == 'f' ? "float" : "int";
    if (size < 0)
        return launch_refuse(launch, i, PyExc_TypeError,
                             "a plain %s, and the driver does not say of which size the parameter is: accepted are "
                             "%s, %s and the like", what, "numpy.int32(...)", "numpy.float32(...)");
    return launch_refuse(launch, i, PyExc_TypeError, "a plain %s, and the parameter has %d bytes: accepted are %s",
                         what, (int)size, kinds_of_size(size));
}

static int fit_integer(const Launch *launch, Py_ssize_t i, int32_t size) {
    Argument *argument = &launch->arguments[i];
    int fits = argument->number == 'i', bits = 8 * size;
    if (fits && size < 8)
        fits = argument->negative ? (int64_t)argument->pointer >= -(INT64_C(1) << (bits - 1))
            : argument->pointer >> bits == 0;
    if (!fits)
        return launch_refuse(launch, i, PyExc_OverflowError, "an int beyond what the parameter's %d bytes hold",
                             (int)size);
    argument->size = size; /* the lowest bytes come first */
    return 0;
}

static int fit_float(const Launch *launch, Py_ssize_t i, int32_t size) {
    Argument *argument = &launch->arguments[i];
    double value;
    memcpy(&value, &argument->pointer, sizeof value);
    argument->size = size;
    if (size == 8) return 0;
    float narrow = (float)value;
    if (isinf(narrow) && !isinf(value))
        return launch_refuse(launch, i, PyExc_OverflowError, "a float beyond what the parameter's 4 bytes hold");
    memcpy(&argument->pointer, &narrow, sizeof narrow);
    return 0;
}

/* An int for a parameter that is a float: one with more digits than it has would be another number there. */
static int fit_integer_as_float(const Launch *launch, Py_ssize_t i, int32_t size) {
    Argument *argument = &launch->arguments[i];
    uint64_t digits = argument->negative ? 0 - argument->pointer : argument->pointer;
    while (digits && !(digits & 1)) digits >>= 1;
    if (argument->number != 'i' || digits >> (size == 8 ? DBL_MANT_DIG : FLT_MANT_DIG))
        return launch_refuse(launch, i, PyExc_OverflowError,
                             "an int that the parameter, a float of %d bytes, does not hold exactly: accepted are a "
                             "float and %s", (int)size, size == 8 ? "numpy.float64(...)" : "numpy.float32(...)");
    double value = argument->negative ? (double)(int64_t)argument->pointer : (double)argument->pointer;
    memcpy(&argument->pointer, &value, sizeof value);
    return fit_float(launch, i, size);
}

static int fit_number(const Launch *launch, Py_ssize_t i, int32_t size, char kind) {
    int is_float = launch->arguments[i].number == 'f', small = kind == SAYS_INTEGER && (size == 1 || size == 2);
    if (is_float && kind == SAYS_INTEGER)
        return launch_refuse(launch, i, PyExc_TypeError,
                             "a float, and the parameter is an integer of %d bytes: accepted are an int, or an array "
                             "where it is an address", (int)size);
    if (size != 4 && size != 8 && !small) return refuse_number(launch, i, size);
    if (is_float) return fit_float(launch, i, size);
    return (kind == SAYS_FLOAT ? fit_integer_as_float : fit_integer)(launch, i, size);
}

/* What is compared where the driver does not know the parameters and the code does. */
static int compare_size(const Launch *launch, Py_ssize_t i, int32_t size) {
    int32_t given = launch->arguments[i].size;
    if (given == size) return 0;
    return launch_refuse(launch, i, PyExc_TypeError, "of %d bytes: accepted is one of %d bytes, as the parameter has",
                         (int)given, (int)size);
}

int launch_fit(Launch *launch, const hamr_kernel *kernel, const Parameter *said, int32_t many) {
    int unknown = kernel->parameters < 0;
    if (unknown && many >= 0 && many != launch->count)
        return RAISE(PyExc_TypeError, "the number of arguments of %U is %zd: accepted is %d", launch->name,
                     launch->count, (int)many);
    for (Py_ssize_t i = 0; i < launch->count; i++) {
        Argument *argument = &launch->arguments[i];
        /* Too many are refused later. */
        int32_t size = i < kernel->parameters ? kernel->sizes[i] : !unknown ? 8 : many >= 0 ? said[i].size : -1;
        char kind = i < many && said[i].size == size ? said[i].kind : SAYS_BYTES;
        if (kind == SAYS_FLOAT && size == 8 && (argument->array || argument->foreign))
            return launch_refuse(launch, i, PyExc_TypeError,
                                 "an array, and the parameter is a float of 8 bytes: accepted are a number and "
                                 "numpy.float64(...)");
        if (argument->number && fit_number(launch, i, size, kind) < 0) return -1;
        if (unknown && many >= 0 && compare_size(launch, i, size) < 0) return -1;
    }
    return 0;
}

void launch_end(Launch *launch) {
    for (Py_ssize_t i = 0; i < launch->count; i++) {
        Py_XDECREF((PyObject *)launch->arguments[i].array);
        Py_XDECREF(launch->arguments[i].pending);
    }
    if (launch->arguments != launch->room) PyMem_Free(launch->arguments);
    while (launch->more_count) PyMem_Free(launch->more[--launch->more_count]);
    Py_XDECREF(launch->finish);
    Py_XDECREF(launch->stream);
}

static PyObject *set_argument_hook(PyObject *Py_UNUSED(module), PyObject *hook) {
    replace_reference(&argument_hook, Py_NewRef(hook));
    Py_RETURN_NONE;
}

PyMethodDef launch_functions[] = {
    {"set_argument_hook", set_argument_hook, METH_O,
     "set_argument_hook(hook): what tells what an argument of a kernel is, hook(i, name, object, odd) -> (kind, "
     "object, reads, typical, device)."},
    {NULL, NULL, 0, NULL},
};
