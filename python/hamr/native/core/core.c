#include "core/core.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/python.h"
#include "core/errors.h"

uint64_t core_generation = 1;

static const hamr_functions *functions;
static PyObject *library; /* the module that gopy generated, in this process's copy */
static int touched;       /* this process has begun to load a copy */
static int inherited;     /* a process that this one was forked from had */
static PyObject *loader;
static uint64_t free_functions[HAMR_ALLOCATORS]; /* by allocator: those of host memory have one */

int core_load(void) {
    if (functions) return 0;
    if (!loader) Py_XDECREF(PyImport_ImportModule("hamr._buffer.buffers")); /* which sets it */
    if (!loader) return PyErr_Occurred() ? -1 : RAISE(PyExc_RuntimeError, "hamr is not initialised");
    PyObject *nothing = PyObject_CallNoArgs(loader);
    if (!nothing) return -1;
    Py_DECREF(nothing);
    if (functions) return 0;
    return RAISE(PyExc_RuntimeError, "hamr's library did not connect");
}

const hamr_functions *core_functions(void) { return functions; }

/* Frees memory that was allocated before a fork, in the child, whose copy of the
 * Go core never heard of it. 0 if the allocator's memory cannot be freed so. */
int core_free_directly(int32_t allocator, uint64_t base) {
    if (allocator < 0 || allocator >= HAMR_ALLOCATORS || !free_functions[allocator]) return 0;
    ((void (*)(void *))(uintptr_t)free_functions[allocator])((void *)(uintptr_t)base);
    return 1;
}

/* For functions that gopy generated. */
static void raise_python(hamr_error *error) { core_raise(error); }

static PyObject *bind(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *candidate_library;
    unsigned long long table;
    if (!PyArg_ParseTuple(arguments, "OK", &candidate_library, &table)) return NULL;
    const hamr_functions *candidate = (const hamr_functions *)(uintptr_t)table;
    if (!candidate || candidate->version != HAMR_ABI_VERSION)
        return PyErr_Format(PyExc_ImportError, "hamr's two libraries are of different versions; reinstall hamr");
    if (!functions) {
        functions = candidate;
        candidate->set_raise(raise_python);
        library = Py_NewRef(candidate_library);
    }
    return Py_NewRef(library);
}

static PyObject *get_library(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    return Py_NewRef(library ? library : Py_None);
}

static PyObject *begin_load(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    touched = 1;
    return PyBool_FromLong(inherited);
}

/* C may have loaded the library before, and in a forked child a copy of it: that is then Python's, too. */
static PyObject *path_in_process(PyObject *Py_UNUSED(module), PyObject *file) {
    PyObject *name = NULL;
    if (!PyUnicode_FSConverter(file, &name)) return NULL;
    void *known = dlopen(PyBytes_AsString(name), RTLD_LAZY | RTLD_NOLOAD);
    Py_DECREF(name);
    if (!known) Py_RETURN_NONE;
    const char *(*ask)(void);
    *(void **)&ask = dlsym(known, "hamr_path_in_process");
    const char *path = "";
    if (ask) {
        Py_BEGIN_ALLOW_THREADS
        path = ask();
        Py_END_ALLOW_THREADS
    }
    int failed = errno;
    dlclose(known);
    errno = failed;
    return path ? PyUnicode_DecodeFSDefault(path) : PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *before_fork(PyObject *Py_UNUSED(module), PyObject *arguments) {
    int allocator;
    unsigned long long function;
    if (!PyArg_ParseTuple(arguments, "iK", &allocator, &function)) return NULL;
    if (allocator < 0 || allocator >= HAMR_ALLOCATORS)
        return PyErr_Format(PyExc_ValueError, "allocator is %d: accepted are 0 ... %d", allocator, HAMR_ALLOCATORS - 1);
    /* 0: not used in this process; what its own parent said then stays. */
    if (function) free_functions[allocator] = function;
    Py_RETURN_NONE;
}

static PyObject *set_hooks(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *load, *exceptions;
    if (!PyArg_ParseTuple(arguments, "OO", &load, &exceptions) || core_raise_as(exceptions) < 0) return NULL;
    replace_reference(&loader, Py_NewRef(load));
    Py_RETURN_NONE;
}

/* What other extension modules call, on any thread. */
static const hamr_functions *get_functions(uint32_t version) {
    if (version != HAMR_ABI_VERSION) return NULL;
    if (!functions) {
        PyGILState_STATE state = PyGILState_Ensure();
        if (core_load() < 0) PyErr_Clear();
        PyGILState_Release(state);
    }
    return functions;
}

int core_setup(PyObject *module) {
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)get_functions, "hamr._native.functions", NULL);
    int added = PyModule_AddObjectRef(module, "functions", capsule);
    Py_XDECREF(capsule);
    return added;
}

void core_forget(void) {
    functions = NULL;
    library = NULL; /* not released: nothing of the parent's copy may run */
    inherited |= touched;
    touched = 0;
    core_generation++;
}

static PyObject *bound(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    return PyBool_FromLong(functions != NULL);
}

static PyObject *generation(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    return PyLong_FromUnsignedLongLong(core_generation);
}

PyMethodDef core_methods[] = {
    {"begin_load", begin_load, METH_NOARGS,
     "begin_load() -> bool: whether a parent process had begun to load the library, so that this one needs a copy."},
    {"path_in_process", path_in_process, METH_O,
     "path_in_process(file) -> the file of this process's copy of the library, \"\" where that is file itself, or "
     "None: nobody has loaded it."},
    {"bind", bind, METH_VARARGS, "bind(library, table) -> library: connect with the Go core; the first one stays."},
    {"library", get_library, METH_NOARGS, "library() -> the module of this process's copy of the Go core, or None."},
    {"before_fork", before_fork, METH_VARARGS,
     "before_fork(allocator, function): what the child is to free this process's memory of an allocator with, if it "
     "is not 0."},
    {"set_hooks", set_hooks, METH_VARARGS,
     "set_hooks(load, exceptions): how to load the Go core, and what its kinds of error are."},
    {"bound", bound, METH_NOARGS, "bound() -> bool: whether the Go core is loaded."},
    {"generation", generation, METH_NOARGS, "generation() -> int: changes at each fork."},
    {NULL, NULL, 0, NULL},
};
