#include "scheduling/product.h"

#include "base/heap_type.h"
#include "base/python.h"
#include "scheduling/events.h"
#include "scheduling/placed.h"

typedef struct {
    PyObject_HEAD
    StreamPlace place;
    PyObject *content;
    PyObject *kept; /* a list of what work on the content uses as well; NULL without */
    uint64_t event;
    Succession *succession;
    char failed; /* somebody was told that the work has */
} Product;

static PyTypeObject *product_type;

int is_product(PyObject *object) { return Py_TYPE(object) == product_type; }

PyObject *product_content(PyObject *product) { return Py_NewRef(((Product *)product)->content); }

void succession_release(Succession *succession) {
    if (succession && --succession->references == 0) PyMem_Free(succession);
}

PyObject *product_new(const StreamPlace *place, PyObject *content, Succession **succession) {
    uint64_t event;
    if (!*succession) {
        if (!(*succession = PyMem_Calloc(1, sizeof **succession))) return PyErr_NoMemory();
        (*succession)->references = 1;
    }
    Product *self = type_allocate(product_type);
    if (!self) return NULL;
    if (event_record(place, &event) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    place_share(&self->place, place);
    self->content = Py_NewRef(content);
    self->event = event;
    self->succession = *succession;
    self->succession->references++;
    return (PyObject *)self;
}

int product_wait(PyObject *product, const StreamPlace *place) {
    Product *self = (Product *)product;
    int failed = event_wait(place, &self->place, self->event) < 0;
    self->failed |= (char)failed;
    return -failed;
}

int product_take(PyObject *product, StreamPlace *place) {
    Product *self = (Product *)product;
    if (self->succession->taken) return 0;
    self->succession->taken = 1;
    place_share(place, &self->place);
    return 1;
}

static void product_dealloc(PyObject *object) {
    Product *self = (Product *)object;
    PyObject_GC_UnTrack(object);
    if (self->event) event_give(&self->place, self->event, self->failed);
    succession_release(self->succession);
    Py_CLEAR(self->content);
    Py_CLEAR(self->kept);
    Py_CLEAR(self->place.stream);
    type_free(object);
}

static int product_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(((Product *)object)->content);
    Py_VISIT(((Product *)object)->kept);
    return placed_traverse(object, visit, arg);
}

static int product_clear(PyObject *object) {
    PyObject *content = ((Product *)object)->content;
    if (content) {
        ((Product *)object)->content = Py_NewRef(Py_None);
        Py_DECREF(content);
    }
    Py_CLEAR(((Product *)object)->kept);
    return 0;
}

/* _keep(object): until the product goes, which whoever got its content keeps until the work on that is over. */
static PyObject *product_keep(PyObject *object, PyObject *kept) {
    Product *self = (Product *)object;
    if (!self->kept && !(self->kept = PyList_New(0))) return NULL;
    if (PyList_Append(self->kept, kept) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *get_done(PyObject *object, void *Py_UNUSED(closure)) {
    Product *self = (Product *)object;
    int done = event_done(&self->place, self->event);
    if (done >= 0) return PyBool_FromLong(done);
    self->failed = 1;
    return NULL;
}

static PyObject *get_event(PyObject *object, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(((Product *)object)->event);
}

static PyObject *get_taken(PyObject *object, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(((Product *)object)->succession->taken);
}

static PyGetSetDef attributes[] = {
    {"done", get_done, NULL, "Whether the work is over that the product stands for.", NULL},
    {"_event", get_event, NULL, "The vendor's event.", NULL},
    {"_taken", get_taken, NULL, "Whether a context has taken the stream over.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *product_text(PyObject *object) {
    const Product *self = (const Product *)object;
    PyObject *name = PyType_GetName(Py_TYPE(self->content));
    PyObject *text = name ? PyUnicode_FromFormat("<hamr.hetero.Product of %U on %s:%d>", name, self->place.backend,
                                                 (int)self->place.device) : NULL;
    Py_XDECREF(name);
    return text;
}

static PyObject *product_reduce(PyObject *Py_UNUSED(object), PyObject *Py_UNUSED(unused)) {
    return PyErr_Format(PyExc_TypeError,
                        "a hamr.hetero.Product is of this process's streams and cannot be pickled: pickle what "
                        "ctx.get(product) returns");
}

static PyMethodDef methods[] = {
    {"__reduce__", product_reduce, METH_NOARGS, NULL},
    {"_keep", product_keep, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_repr, product_text},
    {Py_tp_dealloc, product_dealloc},
    {Py_tp_traverse, product_traverse},
    {Py_tp_clear, product_clear},
    {Py_tp_doc, "What work on a device makes: ScopedContext.wrap makes one, and get reads it.\n\n"
                "It holds any object, and an event that stands for all that the context's stream had been given then."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.Product",
    .basicsize = sizeof(Product),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int product_setup(PyObject *module) {
    return type_add(module, &product_type, &spec, placed_type());
}
