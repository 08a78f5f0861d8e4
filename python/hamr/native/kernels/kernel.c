#include "kernels/kernel.h"

#include <string.h>

#include "array/array.h"
#include "array/snapshot.h"
#include "base/containers.h"
#include "base/heap_type.h"
#include "base/python.h"
#include "base/streams.h"
#include "core/core.h"
#include "core/errors.h"
#include "hamr/functions.h"
#include "kernels/code.h"
#include "kernels/direct.h"
#include "kernels/launch.h"
#include "plain/allocators.h"
#include "scheduling/placed.h"

enum { MOST_DEVICES = 64 };

typedef struct {
    PyObject_HEAD
    PyObject *code; /* a KernelCode */
    PyObject *name;
    uint64_t generation;           /* of what follows */
    hamr_kernel *on[MOST_DEVICES]; /* by device; NULL where it was not used */
    Told told;
    Parameter *said; /* what the code says of the parameters */
    int32_t many;    /* of them; -1: it says nothing */
} Kernel;

static PyTypeObject *kernel_type, *stream_type;
enum { GRID, BLOCK, STREAM, SHARED, SURE, NAMES };
static PyObject *names[NAMES];
/* What makes a hamr.Stream of anything; not empty once there was a "with stream:"; and whether the streams
 * that interfaces name are waited for. */
static PyObject *stream_hook, *entered, *wait_hook;

/* 0, or -1 with an exception. */
static int read_said(Kernel *self, PyObject *said) {
    self->many = -1;
    if (!said || said == Py_None) return 0;
    Py_ssize_t count = PySequence_Size(said);
    if (count < 0) return -1;
    if (!(self->said = PyMem_Calloc((size_t)count + 1, sizeof *self->said))) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *type;
        int kind, size;
        PyObject *item = PySequence_GetItem(said, i);
        int read = item && PyArg_ParseTuple(item, "sCi:parameters", &type, &kind, &size);
        Py_XDECREF(item);
        if (!read) return -1;
        self->said[i] = (Parameter){.size = size, .kind = (char)kind};
    }
    self->many = (int32_t)count;
    return 0;
}

/* KernelBase(code, name, parameters=None) */
static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    static char *keywords[] = {"code", "name", "parameters", NULL};
    PyObject *code, *name, *said = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "OU|O:KernelBase", keywords, &code, &name, &said)) return NULL;
    if (!is_code(code)) return PyErr_Format(PyExc_TypeError, "code is %R: accepted is a KernelCode", code);
    Kernel *self = type_allocate(type);
    if (!self) return NULL;
    self->code = Py_NewRef(code);
    self->name = Py_NewRef(name);
    self->generation = core_generation;
    if (read_said(self, said) < 0) Py_CLEAR(self);
    return (PyObject *)self;
}

static void kernel_dealloc(PyObject *object) {
    Kernel *self = (Kernel *)object;
    PyObject_GC_UnTrack(object);
    const hamr_functions *functions = self->generation == core_generation ? core_functions() : NULL;
    for (int i = 0; functions && i < MOST_DEVICES; i++)
        if (self->on[i]) functions->free(self->on[i]);
    PyMem_Free(self->said);
    Py_CLEAR(self->code);
    Py_CLEAR(self->name);
    type_free(object);
}

static int kernel_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((Kernel *)object)->code);
    return 0;
}

static const hamr_kernel *kernel_on(Kernel *self, int32_t device) {
    if (device >= 0 && device < MOST_DEVICES && self->on[device]) return self->on[device];
    hamr_kernel *loaded = code_kernel(self->code, self->name, device);
    if (!loaded) return NULL;
    if (device < 0 || device >= MOST_DEVICES) {
        if (core_functions()) core_functions()->free(loaded);
        return PyErr_Format(PyExc_ValueError, "device is %d: accepted are 0 ... %d", (int)device, MOST_DEVICES - 1),
            NULL;
    }
    if (self->on[device] && core_functions()) core_functions()->free(loaded); /* by another thread meanwhile */
    else self->on[device] = loaded;
    return self->on[device];
}

static int refuse_axes(PyObject *value, const char *name) {
    return RAISE(PyExc_ValueError, "%s is %R: accepted are an int and up to three, each 1 or more", name, value);
}

static int read_axis(PyObject *whole, PyObject *value, const char *name, uint32_t *into) {
    PyObject *number = PyLong_CheckExact(value) ? Py_NewRef(value) : PyNumber_Index(value);
    if (!number) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        return RAISE(PyExc_TypeError, "%s is %R: accepted are an int and up to three of them in a tuple", name, whole);
    }
    int overflow;
    long long wide = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow || wide < 1 || wide > UINT32_MAX) return refuse_axes(whole, name);
    *into = (uint32_t)wide;
    return 0;
}

static int read_axes(PyObject *value, const char *name, uint32_t *into) {
    into[0] = into[1] = into[2] = 1;
    int is_tuple = PyTuple_Check(value);
    if (!is_tuple && !PyList_Check(value)) return read_axis(value, value, name, into);
    Py_ssize_t count = is_tuple ? PyTuple_Size(value) : PyList_Size(value);
    if (count < 1 || count > 3) return refuse_axes(value, name);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = Py_XNewRef(is_tuple ? PyTuple_GetItem(value, i) : PyList_GetItem(value, i));
        int read = item ? read_axis(value, item, name, &into[i]) : -1;
        Py_XDECREF(item);
        if (read < 0) return -1;
    }
    return 0;
}

static int read_shared(PyObject *value, uint32_t *into) {
    int overflow;
    PyObject *number = PyNumber_Index(value);
    if (!number) return -1;
    long long wide = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow || wide < 0 || wide > INT32_MAX)
        return RAISE(PyExc_ValueError, "shared is %R: accepted is a number of bytes, 0 or more", value);
    *into = (uint32_t)wide;
    return 0;
}

/* Where a launch is enqueued: on the stream given, or that of the innermost "with stream:", or the default one. */
static int read_stream(Kernel *self, Launch *launch, PyObject *given) {
    launch->handle = 0;
    launch->device = -1;
    launch->own = 0;
    if (!given && (!entered || PyList_Size(entered) == 0)) return 0;
    PyObject *stream = NULL;
    if (given && PyObject_TypeCheck(given, stream_type)) {
        PyObject *sure = PyObject_GetAttr(given, names[SURE]);
        if (sure == Py_True) stream = Py_NewRef(given);
        Py_XDECREF(sure);
        if (!sure) return -1;
    }
    if (!stream &&
        !(stream = PyObject_CallFunction(stream_hook, "Os", given ? given : Py_None, code_backend(self->code))))
        return -1;
    StreamPlace place;
    const hamr_functions *functions;
    int read = stream == Py_None ? 0 : place_of_stream(&place, stream);
    if (stream != Py_None && read == 0) {
        launch->stream = place.stream; /* its reference */
        read = place_usable(&place, &functions);
        if (read == 0 && strcmp(place.backend, code_backend(self->code)) != 0) {
            if (place.handle || given) {
                PyErr_Format(PyExc_ValueError, "stream is %R of %s: accepted is one of %s", stream, place.backend,
                             code_backend(self->code));
                read = -1;
            }
        } else if (read == 0) {
            launch->handle = place.handle;
            launch->device = place.device;
            launch->own = place.own;
        }
    }
    Py_DECREF(stream);
    return read;
}

/* grid=, block=, stream=, shared= */
static int read_options(Kernel *self, Launch *launch, PyObject *options) {
    PyObject *grid = options ? PyDict_GetItemWithError(options, names[GRID]) : NULL;
    PyObject *block = options ? PyDict_GetItemWithError(options, names[BLOCK]) : NULL;
    PyObject *stream = options ? PyDict_GetItemWithError(options, names[STREAM]) : NULL;
    PyObject *shared = options ? PyDict_GetItemWithError(options, names[SHARED]) : NULL;
    if (PyErr_Occurred()) return -1;
    if (!grid || !block || PyDict_Size(options) != 2 + !!stream + !!shared)
        return RAISE(PyExc_TypeError, "%U takes grid= and block=, and may take stream= and shared=; got %R", self->name,
                     options ? options : Py_None);
    launch->shape.shared = 0;
    if (read_axes(grid, "grid", launch->shape.grid) < 0 || read_axes(block, "block", launch->shape.block) < 0)
        return -1;
    if (shared && read_shared(shared, &launch->shape.shared) < 0) return -1;
    return read_stream(self, launch, stream == Py_None ? NULL : stream);
}

/* Whose memory a pointer of another library's is; -1 where that cannot be told or is the host's. */
static int locate_pointer(const Argument *argument, const hamr_functions *functions, int32_t *device) {
    hamr_location found;
    *device = -1;
    if (!argument->pointer) return 0;
    hamr_error *error = functions->locate(argument->pointer, &found);
    if (error) return core_raise(error);
    if (found.allocator != HAMR_ALLOCATOR_ANY) *device = found.device;
    return 0;
}

/* The device of a launch: that of its stream, of the first of its arrays, or the current one. */
static int find_device(const Kernel *self, Launch *launch, const hamr_functions *functions) {
    const char *backend = code_backend(self->code);
    int only = code_is_cuda(self->code) && functions->devices->cuda_count == 1;
    if (launch->device < 0 && only) launch->device = 0;
    for (Py_ssize_t i = 0; launch->device < 0 && i < launch->count; i++) {
        const Argument *argument = &launch->arguments[i];
        const hamr_array *array = argument->array ? &argument->array->array : NULL;
        if (argument->foreign && locate_pointer(argument, functions, &launch->device) < 0) return -1;
        const AllocatorFacts *facts = array && array->device >= 0 ? allocator_facts(array->allocator) : NULL;
        if (facts && strcmp(facts->backend, backend) == 0) launch->device = array->device;
    }
    for (Py_ssize_t i = 0; launch->device < 0 && i < launch->count; i++) launch->device = launch->arguments[i].device;
    if (launch->device >= 0) return 0;
    hamr_error *error = functions->current_device(backend, &launch->device);
    return error ? core_raise(error) : 0;
}

/* Another library's arrays: those of another device are refused, and the launch waits for the stream that they name. */
static int follow_others(const Kernel *self, Launch *launch, const hamr_functions *functions) {
    const char *backend = code_backend(self->code);
    int only = code_is_cuda(self->code) && functions->devices->cuda_count == 1;
    for (Py_ssize_t i = 0; i < launch->count; i++) {
        const Argument *argument = &launch->arguments[i];
        int32_t device, waits;
        uint64_t event;
        if (!argument->foreign) continue;
        if (!only) {
            if (locate_pointer(argument, functions, &device) < 0) return -1;
            if (device >= 0 && device != launch->device)
                return launch_refuse(launch, i, PyExc_ValueError,
                                     "on device %d: accepted is memory of device %d, where the kernel runs",
                                     (int)device, (int)launch->device);
        }
        uint64_t mine = launch->handle ? launch->handle : LEGACY_STREAM;
        if (!argument->producer || argument->producer == mine) continue;
        PyObject *wait = PyObject_CallFunctionObjArgs(wait_hook, Py_None, NULL);
        Py_XDECREF(wait);
        if (!wait) return -1;
        if (wait != Py_True) continue;
        hamr_error *error = functions->record_cached_event(backend, launch->device, argument->producer, &event);
        if (!error) {
            error = functions->wait_for_event(backend, launch->device, launch->handle, launch->device, event, &waits);
            core_report(functions->give_cached_event(backend, launch->device, event, 0), NULL);
        }
        if (error) return core_raise(error);
    }
    return 0;
}

/* The launch by way of the core, which has to know the arrays' memory. */
static int launch_by_core(const Launch *launch, const hamr_kernel *kernel, hamr_argument *given, Array **pinned) {
    for (Py_ssize_t i = 0; i < launch->count; i++) {
        const Argument *argument = &launch->arguments[i];
        given[i] = (hamr_argument){.value = argument->value, .size = argument->size, .reads = argument->reads};
        if (!argument->array) continue;
        if (argument->array->closed) return array_freed(argument->array), -1;
        if (!(pinned[i] = array_pin(argument->array))) return -1;
        given[i].array = &pinned[i]->array;
    }
    const hamr_functions *functions = core_functions(); /* none in a child that was forked meanwhile */
    if (!functions) return core_forked();
    hamr_shape shape = launch->shape;
    hamr_error *error;
    Py_BEGIN_ALLOW_THREADS
    error = functions->launch(kernel->kernel, &shape, launch->handle, launch->handle > PER_THREAD_STREAM &&
                              !launch->own, (int32_t)launch->count, given);
    Py_END_ALLOW_THREADS
    return error ? core_raise(error) : 0;
}

static int launch_in_order(Launch *launch, const hamr_kernel *kernel) {
    size_t room = (size_t)launch->count + 1;
    hamr_argument *given = PyMem_Calloc(room, sizeof *given);
    Array **pinned = PyMem_Calloc(room, sizeof *pinned);
    int launched = -1;
    if (given && pinned) launched = launch_by_core(launch, kernel, given, pinned);
    else PyErr_NoMemory();
    if (launched == 0) launch_covered(launch, given);
    Raised raised = raised_take();
    for (Py_ssize_t i = 0; pinned && i < launch->count; i++) Py_XDECREF((PyObject *)pinned[i]);
    raised_restore(raised);
    PyMem_Free(given);
    PyMem_Free(pinned);
    return launched;
}

/* finish(launched, stream, device) */
static int finish(Launch *launch, int launched) {
    PyObject *type, *value, *traceback;
    if (!launch->finish) return launched;
    PyErr_Fetch(&type, &value, &traceback);
    for (Py_ssize_t i = 0; i < PyList_Size(launch->finish); i++) {
        PyObject *done = PyObject_CallFunction(PyList_GetItem(launch->finish, i), "iOi", launched == 0,
                                               launch->stream ? launch->stream : Py_None, (int)launch->device);
        if (!done && (launched < 0 || type)) {
            PyErr_WriteUnraisable(launch->name);
        } else if (!done) {
            PyErr_Fetch(&type, &value, &traceback);
            launched = -1;
        }
        Py_XDECREF(done);
    }
    PyErr_Restore(type, value, traceback);
    return launched;
}

static int run(Kernel *self, Launch *launch) {
    const hamr_functions *functions;
    if (code_usable(self->code, &functions) < 0 || find_device(self, launch, functions) < 0) return -1;
    const hamr_kernel *kernel = kernel_on(self, launch->device);
    if (!kernel || launch_resolve(launch, code_backend(self->code)) < 0 ||
        launch_fit(launch, kernel, self->said, self->many) < 0)
        return -1;
    /* Python code has run meanwhile, perhaps in a child. */
    if (code_usable(self->code, &functions) < 0 || follow_others(self, launch, functions) < 0) return -1;
    int done = code_is_cuda(self->code) ? launch_directly(launch, kernel, &self->told) : 0;
    if (done) return done < 0 ? -1 : 0;
    return launch_in_order(launch, kernel);
}

static PyObject *kernel_call(PyObject *object, PyObject *arguments, PyObject *options) {
    Kernel *self = (Kernel *)object;
    Launch launch;
    launch.name = self->name;
    launch.stream = NULL;
    launch.arguments = launch.room;
    launch.count = 0;
    launch.finish = NULL;
    launch.used = 0;
    launch.more_count = 0;
    int launched = read_options(self, &launch, options);
    if (launched == 0) launched = launch_read(&launch, arguments);
    if (launched == 0) launched = run(self, &launch);
    launched = finish(&launch, launched);
    launch_end(&launch);
    if (launched < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *get_name(PyObject *self, void *Py_UNUSED(closure)) {
    return Py_NewRef(((Kernel *)self)->name);
}

static PyObject *get_code(PyObject *self, void *Py_UNUSED(closure)) {
    return Py_NewRef(((Kernel *)self)->code);
}

static PyGetSetDef attributes[] = {
    {"name", get_name, NULL, "The kernel's name in its module.", NULL},
    {"_code", get_code, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_call, kernel_call},
    {Py_tp_getset, attributes},
    {Py_tp_doc,
     "KernelBase(code, name, parameters=None): a kernel of a KernelCode's, which is called. parameters are (type, "
     "kind, bytes) of each, where the code says so."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.KernelBase",
    .basicsize = sizeof(Kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int kernel_setup(PyObject *module) {
    static const char *const texts[NAMES] = {
        [GRID] = "grid", [BLOCK] = "block", [STREAM] = "stream", [SHARED] = "shared", [SURE] = "_sure",
    };
    if (intern_names(names, texts, NAMES) < 0) return -1;
    return type_add(module, &kernel_type, &spec, NULL);
}

/* set_kernel_streams(type, hook, entered, wait) */
static PyObject *set_kernel_streams(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *type, *hook, *blocks, *wait;
    if (!PyArg_ParseTuple(arguments, "OOO!O", &type, &hook, &PyList_Type, &blocks, &wait)) return NULL;
    replace_reference((PyObject **)&stream_type, Py_NewRef(type));
    replace_reference(&stream_hook, Py_NewRef(hook));
    replace_reference(&entered, Py_NewRef(blocks));
    replace_reference(&wait_hook, Py_NewRef(wait));
    Py_RETURN_NONE;
}

PyMethodDef kernel_functions[] = {
    {"set_kernel_streams", set_kernel_streams, METH_VARARGS,
     "set_kernel_streams(type, hook, entered, wait): hamr.Stream, what makes one of anything for a backend, whether "
     "there was ever a block of one, and who says whether producers' streams are waited for."},
    {NULL, NULL, 0, NULL},
};
