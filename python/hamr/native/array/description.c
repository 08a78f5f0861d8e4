#include "array/description.h"

#include "array/array.h"
#include "array/snapshot.h"
#include "base/elements.h"
#include "base/python.h"

static PyObject *shape_name, *typestr_name, *data_name, *strides_name, *version_name, *stream_name;

int description_setup(void) {
    static const struct { PyObject **name; const char *text; } names[] = {
        {&shape_name, "shape"}, {&typestr_name, "typestr"}, {&data_name, "data"},
        {&strides_name, "strides"}, {&version_name, "version"}, {&stream_name, "stream"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!*names[i].name && !(*names[i].name = PyUnicode_InternFromString(names[i].text))) return -1;
    return 0;
}

/* The dictionary of an array that does not change, without its stream. */
static PyObject *describe(const Array *self) {
    const hamr_array *array = &self->array;
    const ElementFacts *facts = element_facts(array->element);
    int readonly = array->flags & HAMR_READ_ONLY && !self->own_copy; /* libraries refuse read-only arrays */
    PyObject *shape = array_dimensions(array->shape, array->ndim);
    PyObject *strides = array_contiguous(array, 0) ? Py_NewRef(Py_None) : array_dimensions(array->strides, array->ndim);
    if (!shape || !strides) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    unsigned long long pointer = array_count(array) ? array->pointer : 0;
    return Py_BuildValue("{O:N,O:s,O:(KO),O:N,O:i,O:O}", shape_name, shape, typestr_name, facts->typestr,
                         data_name, pointer, readonly ? Py_True : Py_False,
                         strides_name, strides, version_name, 3, stream_name, Py_None);
}

/* Libraries for HIP read and offer the interface under CUDA's name. Of memory that CUDA shares with
 * another runtime the core has said so to whoever has a handle for CUDA in place. */
int description_offered(const Array *self) {
    if (self->array.flags & (HAMR_REACHABLE(HAMR_CUDA) | HAMR_REACHABLE(HAMR_HIP))) return 1;
    return self->for_space == FOR_SPACE(HAMR_CUDA) && !(self->array.flags & HAMR_HOST_REACHABLE);
}

int description_prepare(Array *self) {
    while (!self->interface) {
        const ElementFacts *facts = element_facts(self->array.element);
        if (!facts || !facts->format || !description_offered(self)) return 0;
        /* Making tuples may run finalisers, which may change the array. */
        uint32_t changes = self->changes;
        Array *source = (Array *)array_snapshot(self, array_type);
        PyObject *interface = source ? describe(source) : NULL;
        Py_XDECREF((PyObject *)source);
        if (!interface) return -1;
        if (changes == self->changes && !self->interface) self->interface = interface;
        else Py_DECREF(interface);
    }
    return 0;
}
