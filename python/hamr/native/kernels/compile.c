#include "kernels/compile.h"

#include "core/core.h"
#include "core/errors.h"
#include "core/texts.h"
#include "hamr/functions.h"

/* Texts of a tuple of str, ended by NULL, which last as long as the tuple; NULL with an exception. */
static char **texts_of(PyObject *tuple) {
    Py_ssize_t count = PyTuple_Size(tuple);
    char **texts = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *texts);
    if (!texts && !PyErr_Occurred()) PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts && i < count; i++) {
        texts[i] = (char *)(uintptr_t)PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
        if (!texts[i]) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    return texts;
}

static PyObject *compiled(hamr_code *code) {
    PyObject *log = core_text(code->log);
    return log ? Py_BuildValue("(y#Ny)", (const char *)code->image, (Py_ssize_t)code->size, log, code->text) : NULL;
}

/* compile_kernels(backend, text, name, architecture, options, libraries, device) -> (image, log, text) */
static PyObject *compile_kernels(PyObject *Py_UNUSED(module), PyObject *arguments) {
    const char *backend, *text, *name, *architecture;
    PyObject *options, *libraries;
    int device;
    if (!PyArg_ParseTuple(arguments, "ssssO!O!i", &backend, &text, &name, &architecture, &PyTuple_Type, &options,
                          &PyTuple_Type, &libraries, &device))
        return NULL;
    if (core_load() < 0) return NULL;
    char **given = texts_of(options), **tried = given ? texts_of(libraries) : NULL;
    hamr_error *error = NULL;
    hamr_code *code = NULL;
    const hamr_functions *functions = core_functions();
    if (tried && functions) {
        hamr_source source = {.text = (char *)(uintptr_t)text, .name = (char *)(uintptr_t)name,
                              .architecture = (char *)(uintptr_t)architecture,
                              .options = given, .libraries = tried, .device = device};
        Py_BEGIN_ALLOW_THREADS
        error = functions->compile(backend, &source, &code);
        Py_END_ALLOW_THREADS
    } else if (tried) {
        core_forked();
    }
    PyMem_Free(given);
    PyMem_Free(tried);
    if (error) core_raise(error);
    PyObject *made = code ? compiled(code) : NULL;
    if (code && core_functions()) core_functions()->free(code);
    return made;
}

PyMethodDef compile_functions[] = {
    {"compile_kernels", compile_kernels, METH_VARARGS,
     "compile_kernels(backend, text, name, architecture, options, libraries, device) -> (image, log, text): by the "
     "vendor's compiler; text is the PTX beside a binary, or empty."},
    {NULL, NULL, 0, NULL},
};
