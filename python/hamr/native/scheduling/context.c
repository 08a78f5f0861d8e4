#include "scheduling/context.h"

#include <dlfcn.h>

#include "array/construct.h"
#include "base/heap_type.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "scheduling/placed.h"
#include "scheduling/product.h"

typedef struct {
    PyObject_HEAD
    StreamPlace place;
    PyObject *outer;   /* the blocks around this one; NULL: it is not entered */
    PyObject *blocks;  /* those with this one */
    PyObject *token;   /* of the variable's, to have those around again */
    Succession *succession;
    uint64_t before;   /* what was current, for restore */
    uint64_t inside;   /* what was when the scope was suspended */
    unsigned long thread;
    unsigned scope;       /* how often it was entered: a suspension is of one scope */
    unsigned suspensions; /* which may be within each other, or of tasks that wait at the same time */
    char activated;
} Context;

/* Python's functions of context variables, which the limited API lacks; NULL: ask the object. */
static int (*variable_get)(PyObject *variable, PyObject *otherwise, PyObject **value);
static PyObject *(*variable_set)(PyObject *variable, PyObject *value);
static int (*variable_reset)(PyObject *variable, PyObject *token);

/* What Python says: the variable of the blocks that a thread or task is in, how to leave one that
 * is not the innermost, and what cannot be done here. */
static PyObject *blocks_variable, *without_block, *new_stream, *elsewhere, *when_done, *suspended;

/* A new reference, or NULL with an exception. */
static PyObject *get_blocks(void) {
    PyObject *blocks = NULL;
    if (!variable_get) return PyObject_CallMethod(blocks_variable, "get", NULL);
    return variable_get(blocks_variable, NULL, &blocks) < 0 ? NULL : blocks;
}

/* The variable's token, or NULL with an exception. */
static PyObject *set_blocks(PyObject *blocks) {
    return variable_set ? variable_set(blocks_variable, blocks) : PyObject_CallMethod(blocks_variable, "set", "(O)", blocks);
}

/* set_context_hooks(blocks, without, new_stream, elsewhere, done, suspended) */
static PyObject *set_context_hooks(PyObject *module, PyObject *arguments) {
    PyObject *hooks[6], **own[] = {&blocks_variable, &without_block, &new_stream, &elsewhere, &when_done, &suspended};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOOOO", &hooks[0], &hooks[1], &hooks[2], &hooks[3], &hooks[4], &hooks[5])) return NULL;
    for (int i = 0; i < 6; i++) {
        PyObject *old = *own[i];
        *own[i] = Py_NewRef(hooks[i]);
        Py_XDECREF(old);
    }
    Py_RETURN_NONE;
}

/* ScopedContext(source): of a Token, or a Product, whose stream its first context takes over. */
static PyObject *context_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    static char *keywords[] = {"source", NULL};
    PyObject *source = !names && PyTuple_Size(arguments) == 1 ? PyTuple_GetItem(arguments, 0) : NULL;
    if (!source && !PyArg_ParseTupleAndKeywords(arguments, names, "O:ScopedContext", keywords, &source)) return NULL;
    if (!PyObject_TypeCheck(source, (PyTypeObject *)placed_type()))
        return PyErr_Format(PyExc_TypeError, "source is %R: accepted are a hamr.hetero.Token and a hamr.hetero.Product", source);
    const StreamPlace *place = &((Placed *)source)->place;
    const hamr_functions *functions;
    if (place_usable(place, &functions) < 0) return NULL;
    Context *self = type_allocate(type);
    if (!self) return NULL;
    if (!is_product(source)) {
        place_share(&self->place, place);
    } else if (!product_take(source, &self->place)) {
        PyObject *stream = PyObject_CallFunction(new_stream, "si", place->backend, (int)place->device);
        int failed = !stream || place_of_stream(&self->place, stream) < 0;
        Py_XDECREF(stream);
        if (failed) Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* Whether the driver has made a context current. current is the one that was. */
static int set_directly(const hamr_devices *devices, void *context, void **current) {
    *current = NULL;
    return devices && devices->cuda_context(current) == 0 && (*current == context || devices->cuda_set(context) == 0);
}

/* Makes the device the thread's current one, of runtimes that have that. 0, or -1 with an exception. */
static int activate(Context *self) {
    const hamr_functions *functions;
    if (place_usable(&self->place, &functions) < 0) return -1;
    const hamr_devices *devices = place_driver(&self->place, functions);
    void *current;
    if (devices && set_directly(devices, devices->cuda_contexts[self->place.device], &current)) {
        self->before = (uint64_t)(uintptr_t)current;
    } else {
        int32_t has;
        hamr_error *error = functions->activate_if_current(self->place.backend, self->place.device, &self->before, &has);
        if (error) return core_raise(error);
        if (!has) return 0;
    }
    self->activated = 1;
    return 0;
}

/* What was current before is so again. 0, or -1 with an exception. */
static int restore(Context *self) {
    const hamr_functions *functions = core_functions();
    if (!self->activated) return 0;
    self->activated = 0;
    if (self->place.generation != core_generation || !functions) return 0; /* the driver does not survive a fork */
    void *current;
    if (set_directly(place_driver(&self->place, functions), (void *)(uintptr_t)self->before, &current)) return 0;
    hamr_error *error = functions->restore(self->place.backend, self->before);
    return error ? core_raise(error) : 0;
}

static int enter_blocks(Context *self) {
    PyObject *outer = get_blocks();
    PyObject *blocks = outer ? PyTuple_Pack(2, self->place.stream, outer) : NULL;
    if (!blocks || (PyList_Size(blocks_entered) == 0 && PyList_Append(blocks_entered, Py_True) < 0) || !(self->token = set_blocks(blocks))) {
        Py_XDECREF(outer);
        Py_XDECREF(blocks);
        return -1;
    }
    self->outer = outer;
    self->blocks = blocks;
    return 0;
}

static int leave_blocks(Context *self) {
    PyObject *now = get_blocks(), *left = NULL;
    int failed = !now;
    if (now && (now != self->blocks || !variable_reset || variable_reset(blocks_variable, self->token) < 0)) {
        PyErr_Clear(); /* in another context than the token's: a task's copy */
        left = now == self->blocks ? Py_NewRef(self->outer) : PyObject_CallFunctionObjArgs(without_block, now, self->place.stream, NULL);
        PyObject *token = left ? set_blocks(left) : NULL;
        failed = !token;
        Py_XDECREF(token);
    }
    Py_XDECREF(now);
    Py_XDECREF(left);
    Py_CLEAR(self->token);
    Py_CLEAR(self->outer);
    Py_CLEAR(self->blocks);
    return -failed;
}

static PyObject *context_enter(PyObject *object, PyObject *unused) {
    Context *self = (Context *)object;
    (void)unused;
    if (self->outer) {
        PyErr_SetString(PyExc_RuntimeError, "a hamr.hetero.ScopedContext is one scope, which has been entered: make another one of the same token");
        return NULL;
    }
    if (activate(self) < 0) return NULL;
    if (enter_blocks(self) < 0) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (restore(self) < 0) PyErr_Clear();
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    self->thread = PyThread_get_thread_ident();
    self->scope++;
    self->suspensions = 0;
    return Py_NewRef(object);
}

static int on_own_thread(const Context *self) {
    if (self->thread == PyThread_get_thread_ident()) return 1;
    PyErr_SetString(PyExc_RuntimeError, "the scope of a hamr.hetero.ScopedContext ends on another thread than it began on");
    return 0;
}

static PyObject *context_exit(PyObject *object, PyObject *const *arguments, Py_ssize_t count) {
    Context *self = (Context *)object;
    (void)arguments;
    (void)count;
    if (!self->outer) {
        PyErr_SetString(PyExc_RuntimeError, "the scope of the hamr.hetero.ScopedContext has not been entered");
        return NULL;
    }
    if (!on_own_thread(self)) return NULL;
    int failed = restore(self) < 0;
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    if (failed) PyErr_Fetch(&type, &value, &traceback);
    if (leave_blocks(self) < 0) failed = 1;
    if (type) PyErr_Restore(type, value, traceback);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* Notes what is current, which may be an inner scope's device. 0, or -1 with an exception. */
static int note_inside(Context *self) {
    const hamr_functions *functions;
    void *current;
    int32_t has;
    if (place_usable(&self->place, &functions) < 0) return -1;
    const hamr_devices *devices = place_driver(&self->place, functions);
    if (devices && devices->cuda_context(&current) == 0) {
        self->inside = (uint64_t)(uintptr_t)current;
        return 0;
    }
    hamr_error *error = functions->activate_if_current(self->place.backend, self->place.device, &self->inside, &has);
    return error ? core_raise(error) : 0;
}

/* Makes current what note_inside has noted. 0, or -1 with an exception. */
static int restore_inside(Context *self) {
    if (activate(self) < 0) return -1;
    if (!self->activated) return 0;
    const hamr_functions *functions = core_functions();
    void *current;
    if (set_directly(place_driver(&self->place, functions), (void *)(uintptr_t)self->inside, &current)) return 0;
    hamr_error *error = functions->restore(self->place.backend, self->inside);
    return error ? core_raise(error) : 0;
}

/* _suspend() -> the scope: what is current on the thread outside of it is so until as many calls of resume.
 * A coroutine that waits leaves the thread to others. */
static PyObject *context_suspend(PyObject *object, PyObject *unused) {
    Context *self = (Context *)object;
    (void)unused;
    if (!self->outer) return PyLong_FromLong(0);
    if (!on_own_thread(self)) return NULL;
    if (self->activated && (note_inside(self) < 0 || restore(self) < 0)) return NULL;
    self->suspensions++;
    return PyLong_FromUnsignedLong(self->scope);
}

/* _resume(scope): of one that has ended, nothing. */
static PyObject *context_resume(PyObject *object, PyObject *number) {
    Context *self = (Context *)object;
    unsigned long scope = PyLong_AsUnsignedLong(number);
    if (scope == (unsigned long)-1 && PyErr_Occurred()) return NULL;
    if (!self->outer || scope != self->scope) Py_RETURN_NONE;
    if (!on_own_thread(self)) return NULL;
    if (self->suspensions && --self->suspensions == 0 && restore_inside(self) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *context_done(PyObject *object, PyObject *unused) {
    (void)unused;
    return PyObject_CallFunctionObjArgs(when_done, object, NULL);
}

static PyObject *context_suspended(PyObject *object, PyObject *unused) {
    (void)unused;
    return PyObject_CallFunctionObjArgs(suspended, object, NULL);
}

static PyObject *context_text(PyObject *object) {
    const StreamPlace *place = &((Context *)object)->place;
    return PyUnicode_FromFormat("<hamr.hetero.ScopedContext on %s:%d, %R>", place->backend, (int)place->device, place->stream);
}

static PyObject *context_wrap(PyObject *object, PyObject *content) { return product_new(&((Context *)object)->place, content, &((Context *)object)->succession); }

/* get(product, migrate=False) */
static PyObject *context_get(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    const Context *self = (const Context *)object;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (count < 1 || count + named > 2 || (named && !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "migrate") == 0)) {
        PyErr_SetString(PyExc_TypeError, "get takes a product, and migrate");
        return NULL;
    }
    PyObject *product = arguments[0], *migrate = count + named == 2 ? arguments[1] : Py_False;
    if (!is_product(product)) return PyErr_Format(PyExc_TypeError, "product is %R: accepted is what wrap of a hamr.hetero.ScopedContext returns", product);
    const StreamPlace *place = &((Placed *)product)->place;
    const hamr_functions *functions;
    if (place_usable(place, &functions) < 0) return NULL;
    if (!place_same_device(place, &self->place)) {
        PyObject *moved = PyObject_CallFunctionObjArgs(elsewhere, object, product, migrate, NULL);
        return moved;
    }
    if (place->handle != self->place.handle && product_wait(product, &self->place) < 0) return NULL;
    return product_content(product);
}

/* For elsewhere: the stream waits for a product of another device. */
static PyObject *context_wait(PyObject *object, PyObject *product) {
    if (!is_product(product)) return PyErr_Format(PyExc_TypeError, "product is %R: accepted is a hamr.hetero.Product", product);
    if (product_wait(product, &((Context *)object)->place) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *context_content(PyObject *object, PyObject *product) {
    (void)object;
    if (!is_product(product)) return PyErr_Format(PyExc_TypeError, "product is %R: accepted is a hamr.hetero.Product", product);
    return product_content(product);
}

static void context_dealloc(PyObject *object) {
    Context *self = (Context *)object;
    PyObject_GC_UnTrack(object);
    succession_release(self->succession);
    Py_CLEAR(self->token);
    Py_CLEAR(self->outer);
    Py_CLEAR(self->blocks);
    Py_CLEAR(self->place.stream);
    type_free(object);
}

static int context_traverse(PyObject *object, visitproc visit, void *arg) {
    const Context *self = (const Context *)object;
    Py_VISIT(self->outer);
    Py_VISIT(self->blocks);
    Py_VISIT(self->token);
    return placed_traverse(object, visit, arg);
}

static PyMethodDef methods[] = {
    {"__enter__", context_enter, METH_NOARGS, NULL},
    {"__exit__", FAST(context_exit), METH_FASTCALL, NULL},
    {"done", context_done, METH_NOARGS,
     "await done(): until all is over that has been enqueued on the stream so far.\n\n"
     "The event loop runs on meanwhile, with what was current outside of the scope. A device's error is\n"
     "raised here. Nothing is lost if the wait is cancelled: the work goes on."},
    {"suspended", context_suspended, METH_NOARGS, "with suspended(): a block in which what was current outside of the scope is so again."},
    {"_suspend", context_suspend, METH_NOARGS, NULL},
    {"_resume", context_resume, METH_O, NULL},
    {"_wait", context_wait, METH_O, NULL},
    {"_content", context_content, METH_O, NULL},
    {"wrap", context_wrap, METH_O,
     "wrap(object) -> Product: the object, and an event behind all that the stream has been given so far."},
    {"get", FAST(context_get), METH_FASTCALL | METH_KEYWORDS,
     "get(product, migrate=False) -> the object in it, which later work on the context's stream may use.\n\n"
     "The stream waits for the product's event if they are of different streams and the event is pending;\n"
     "the caller never does. A product of another device is a DeviceMismatch; with migrate its arrays are\n"
     "copied to the context's device."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, context_new},
    {Py_tp_repr, context_text},
    {Py_tp_methods, methods},
    {Py_tp_dealloc, context_dealloc},
    {Py_tp_traverse, context_traverse},
    {Py_tp_doc, "A scope in which work is enqueued: ``with ScopedContext(source) as ctx:``.\n"
                "\n"
                "``source`` is a Token, or a Product: then the device is that of the product, and the stream too\n"
                "for the first context that is made of it or of another one that was wrapped beside it; later\n"
                "ones have streams of their own. In the scope the device is the thread's current one, of runtimes\n"
                "that have that, and hamr's buffers that are made without ``stream=`` use the stream. Other\n"
                "libraries are given ``ctx.stream``, as by ``cupy.cuda.ExternalStream(ctx.stream.ptr)``. What was\n"
                "current before is so again at the end, after exceptions, too. Scopes nest, on any thread; each\n"
                "begins and ends on one thread, and not twice at once.\n"
                "\n"
                "``wrap(object)`` makes a Product, ``get(product)`` reads one; neither waits. Whoever has got an\n"
                "object keeps its product until the work on it is over.\n"
                "\n"
                "In a coroutine, wait by ``await ctx.done()``. Around any other ``await`` in the scope put\n"
                "``with ctx.suspended():``, since the thread is then others'.\n"
                ""},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.ScopedContext",
    .basicsize = sizeof(Context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int context_setup(PyObject *module) {
    static PyObject *type;
    *(void **)&variable_get = dlsym(RTLD_DEFAULT, "PyContextVar_Get");
    *(void **)&variable_set = dlsym(RTLD_DEFAULT, "PyContextVar_Set");
    *(void **)&variable_reset = dlsym(RTLD_DEFAULT, "PyContextVar_Reset");
    if (!type && !(type = PyType_FromModuleAndSpec(module, &spec, placed_type()))) return -1;
    return PyModule_AddObjectRef(module, "ScopedContext", type);
}

PyMethodDef context_functions[] = {
    {"set_context_hooks", set_context_hooks, METH_VARARGS, "set_context_hooks(blocks, without, new_stream, elsewhere, done, suspended): what a ScopedContext asks of Python."},
    {NULL, NULL, 0, NULL},
};
