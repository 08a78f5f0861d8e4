#include "kernels/code.h"

#include <string.h>

#include "base/containers.h"
#include "base/heap_type.h"
#include "core/core.h"
#include "core/errors.h"

typedef struct {
    PyObject_HEAD
    uint64_t number; /* the core's; 0: none */
    uint64_t generation;
    char backend[BACKEND_NAME];
    char is_cuda;
} Code;

static PyTypeObject *code_type;

int is_code(PyObject *object) { return Py_TYPE(object) == code_type; }

const char *code_backend(PyObject *code) { return ((const Code *)code)->backend; }

int code_is_cuda(PyObject *code) { return ((const Code *)code)->is_cuda; }

static hamr_error *load(Code *self, const hamr_functions *functions, PyObject *image) {
    hamr_error *error;
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(image, &bytes, &size) < 0) return core_interruption();
    Py_BEGIN_ALLOW_THREADS
    error = functions->open_module(self->backend, bytes, size, &self->number);
    Py_END_ALLOW_THREADS
    return error;
}

/* KernelCode(backend, image) */
static PyObject *code_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    static char *keywords[] = {"backend", "image", NULL};
    const char *backend;
    PyObject *image;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "sO:KernelCode", keywords, &backend, &image)) return NULL;
    if (!PyBytes_Check(image)) return PyErr_Format(PyExc_TypeError, "image is %R: accepted are bytes", image);
    if (strlen(backend) >= BACKEND_NAME)
        return PyErr_Format(PyExc_ValueError, "backend is %s: its name is too long", backend);
    if (core_load() < 0) return NULL;
    Code *self = type_allocate(type);
    if (!self) return NULL;
    strcpy(self->backend, backend);
    self->is_cuda = strcmp(backend, "cuda") == 0;
    self->generation = core_generation;
    const hamr_functions *functions = core_functions();
    hamr_error *error = functions ? load(self, functions, image) : NULL;
    if (error || !functions) {
        if (error) core_raise(error);
        else core_forked();
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void code_dealloc(PyObject *object) {
    Code *self = (Code *)object;
    PyObject_GC_UnTrack(object);
    const hamr_functions *functions = self->number && self->generation == core_generation ? core_functions() : NULL;
    if (functions) {
        hamr_error *error;
        Py_BEGIN_ALLOW_THREADS
        error = functions->close_module(self->number);
        Py_END_ALLOW_THREADS
        core_report(error, (PyObject *)Py_TYPE(object));
    }
    type_free(object);
}

int code_usable(PyObject *code, const hamr_functions **functions) {
    if (((const Code *)code)->generation != core_generation || !(*functions = core_functions())) {
        PyErr_Clear();
        return core_forked();
    }
    return 0;
}

hamr_kernel *code_kernel(PyObject *object, PyObject *name, int32_t device) {
    const Code *self = (const Code *)object;
    const hamr_functions *functions;
    hamr_kernel *kernel = NULL;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text || code_usable(object, &functions) < 0) return NULL;
    hamr_error *error;
    uint64_t number = self->number;
    /* The driver may take seconds to compile. */
    Py_BEGIN_ALLOW_THREADS
    error = functions->get_kernel(number, text, device, &kernel);
    Py_END_ALLOW_THREADS
    if (error) core_raise(error);
    return error ? NULL : kernel;
}

static PyObject *sizes_of(const hamr_kernel *kernel) {
    if (kernel->parameters < 0) return Py_NewRef(Py_None);
    PyObject *sizes = PyTuple_New(kernel->parameters);
    for (int i = 0; sizes && i < kernel->parameters; i++)
        tuple_put(&sizes, i, PyLong_FromLong(kernel->sizes[i]));
    return sizes;
}

/* facts(name, device) -> dict */
static PyObject *code_facts(PyObject *object, PyObject *arguments) {
    PyObject *name;
    int device;
    if (!PyArg_ParseTuple(arguments, "Ui", &name, &device)) return NULL;
    hamr_kernel *k = code_kernel(object, name, device);
    if (!k) return NULL;
    PyObject *sizes = sizes_of(k), *facts = NULL;
    if (sizes)
        facts = Py_BuildValue("{s:N,s:i,s:i,s:i,s:i,s:i,s:i,s:(III),s:(III)}", "parameters", sizes, "threads",
                              k->threads,
                              "shared", k->static_shared, "most_shared", k->most_shared, "constant", k->constant,
                              "local", k->local,
                              "registers", k->registers, "most_block", k->most_block[0], k->most_block[1],
                              k->most_block[2],
                              "most_grid", k->most_grid[0], k->most_grid[1], k->most_grid[2]);
    if (core_functions()) core_functions()->free(k);
    return facts;
}

static int code_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static PyMethodDef methods[] = {
    {"facts", code_facts, METH_VARARGS,
     "facts(name, device) -> dict: what is known of a kernel on a device, into which it is loaded."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, code_new},
    {Py_tp_dealloc, code_dealloc},
    {Py_tp_traverse, code_traverse},
    {Py_tp_methods, methods},
    {Py_tp_doc, "KernelCode(backend, image): code with kernels, which is loaded into each device that one is used on."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.KernelCode",
    .basicsize = sizeof(Code),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

int code_setup(PyObject *module) {
    return type_add(module, &code_type, &spec, NULL);
}
