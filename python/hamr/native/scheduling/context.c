#include "scheduling/context.h"

#include "base/heap_type.h"
#include "base/python.h"
#include "scheduling/placed.h"
#include "scheduling/product.h"
#include "scheduling/scope.h"

/* What Python says: how to have a stream of a device's, and what cannot be done here. */
static PyObject *new_stream, *elsewhere, *when_done, *suspended;

/* set_context_hooks(blocks, without, new_stream, elsewhere, done, suspended) */
static PyObject *set_context_hooks(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject *variable, *without, *hooks[4], **own[] = {&new_stream, &elsewhere, &when_done, &suspended};
    if (!PyArg_ParseTuple(arguments, "OOOOOO", &variable, &without, &hooks[0], &hooks[1], &hooks[2], &hooks[3]))
        return NULL;
    scope_set_hooks(variable, without);
    for (int i = 0; i < 4; i++) replace_reference(own[i], Py_NewRef(hooks[i]));
    Py_RETURN_NONE;
}

/* ScopedContext(source): of a Token, or a Product, whose stream its first context takes over. */
static PyObject *context_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    static char *keywords[] = {"source", NULL};
    PyObject *source = !names && PyTuple_Size(arguments) == 1 ? PyTuple_GetItem(arguments, 0) : NULL;
    if (!source && !PyArg_ParseTupleAndKeywords(arguments, names, "O:ScopedContext", keywords, &source)) return NULL;
    if (!PyObject_TypeCheck(source, placed_type()))
        return PyErr_Format(PyExc_TypeError, "source is %R: accepted are a hamr.hetero.Token and a hamr.hetero.Product",
                            source);
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

static PyObject *context_enter(PyObject *object, PyObject *Py_UNUSED(unused)) {
    return scope_enter((Context *)object) < 0 ? NULL : Py_NewRef(object);
}

/* __exit__. The collector, for one, closes a coroutine that is never resumed, on any thread: no scope is left there. */
static PyObject *context_exit(PyObject *object, PyObject *const *arguments, Py_ssize_t count) {
    if (scope_exit((Context *)object) < 0) {
        if (count < 1 || arguments[0] != PyExc_GeneratorExit || PyErr_Occurred() != PyExc_RuntimeError) return NULL;
        PyErr_Clear();
        scope_forget((Context *)object);
    }
    Py_RETURN_NONE;
}

/* _suspend() -> what was suspended, for _resume. */
static PyObject *context_suspend(PyObject *object, PyObject *Py_UNUSED(unused)) {
    return scope_suspend((Context *)object);
}

static PyObject *context_resume(PyObject *Py_UNUSED(object), PyObject *scopes) {
    if (scope_resume(scopes) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *context_done(PyObject *object, PyObject *Py_UNUSED(unused)) {
    return PyObject_CallFunctionObjArgs(when_done, object, NULL);
}

static PyObject *context_suspended(PyObject *object, PyObject *Py_UNUSED(unused)) {
    return PyObject_CallFunctionObjArgs(suspended, object, NULL);
}

static PyObject *context_text(PyObject *object) {
    const StreamPlace *place = &((Context *)object)->place;
    return PyUnicode_FromFormat("<hamr.hetero.ScopedContext on %s:%d, %R>", place->backend, (int)place->device,
                                place->stream);
}

static PyObject *context_wrap(PyObject *object, PyObject *content) {
    return product_new(&((Context *)object)->place, content, &((Context *)object)->succession);
}

/* get(product, migrate=False) */
static PyObject *context_get(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    const Context *self = (const Context *)object;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (count < 1 || count + named > 2 ||
        (named && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "migrate")))
        return PyErr_Format(PyExc_TypeError, "get takes a product, and migrate");
    PyObject *product = arguments[0], *migrate = count + named == 2 ? arguments[1] : Py_False;
    if (!is_product(product))
        return PyErr_Format(PyExc_TypeError,
                            "product is %R: accepted is what wrap of a hamr.hetero.ScopedContext returns", product);
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
    if (!is_product(product))
        return PyErr_Format(PyExc_TypeError, "product is %R: accepted is a hamr.hetero.Product", product);
    if (product_wait(product, &((Context *)object)->place) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *context_content(PyObject *Py_UNUSED(object), PyObject *product) {
    if (!is_product(product))
        return PyErr_Format(PyExc_TypeError, "product is %R: accepted is a hamr.hetero.Product", product);
    return product_content(product);
}

static void context_dealloc(PyObject *object) {
    Context *self = (Context *)object;
    PyObject_GC_UnTrack(object);
    succession_release(self->succession);
    scope_forget(self);
    Py_CLEAR(self->place.stream);
    type_free(object);
}

static int context_traverse(PyObject *object, visitproc visit, void *arg) {
    const Context *self = (const Context *)object;
    Py_VISIT(self->outer);
    Py_VISIT(self->blocks);
    Py_VISIT(self->token);
    Py_VISIT(self->enclosing);
    return placed_traverse(object, visit, arg);
}

static int context_clear(PyObject *object) {
    scope_forget((Context *)object);
    return 0;
}

static PyMethodDef methods[] = {
    {"__enter__", context_enter, METH_NOARGS, NULL},
    {"__exit__", FAST(context_exit), METH_FASTCALL, NULL},
    {"done", context_done, METH_NOARGS,
     "await done(): until all is over that has been enqueued on the stream so far.\n\n"
     "The event loop runs on meanwhile, with what was current outside of the scope. A device's error is\n"
     "raised here. Nothing is lost if the wait is cancelled: the work goes on."},
    {"suspended", context_suspended, METH_NOARGS,
     "with suspended(): a block in which what was current outside of all nested scopes is so again."},
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
     "copied to the context's device: buffers and other libraries' arrays in a device's memory, in lists,\n"
     "tuples, sets, dictionaries and dataclasses, which are rebuilt; what is of the host stays."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, context_new},
    {Py_tp_repr, context_text},
    {Py_tp_methods, methods},
    {Py_tp_dealloc, context_dealloc},
    {Py_tp_traverse, context_traverse},
    {Py_tp_clear, context_clear},
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
    static PyTypeObject *type;
    scope_setup();
    return type_add(module, &type, &spec, placed_type());
}

PyMethodDef context_functions[] = {
    {"set_context_hooks", set_context_hooks, METH_VARARGS,
     "set_context_hooks(blocks, without, new_stream, elsewhere, done, suspended): what a ScopedContext asks of "
     "Python."},
    {NULL, NULL, 0, NULL},
};
