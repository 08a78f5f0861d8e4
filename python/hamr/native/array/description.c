#include "array/description.h"

#include "array/array.h"
#include "array/snapshot.h"
#include "base/containers.h"
#include "base/python.h"
#include "plain/layout.h"

enum { SHAPE, TYPESTR, DATA, STRIDES, VERSION, STREAM, NAMES };
static PyObject *names[NAMES];

int description_setup(void) {
    static const char *const texts[NAMES] = {
        [SHAPE] = "shape", [TYPESTR] = "typestr", [DATA] = "data", [STRIDES] = "strides", [VERSION] = "version",
        [STREAM] = "stream",
    };
    return intern_names(names, texts, NAMES);
}

/* The dictionary of an array that does not change, without its stream. */
static PyObject *describe(const Array *self) {
    const hamr_array *array = &self->array;
    const ElementFacts *facts = element_facts(array->element);
    int readonly = array->flags & HAMR_READ_ONLY && !self->own_copy; /* libraries refuse read-only arrays */
    PyObject *shape, *strides;
    if (array_layout(array, &shape, &strides) < 0) return NULL;
    unsigned long long pointer = array_count(array) ? array->pointer : 0;
    return Py_BuildValue("{O:N,O:s,O:(KO),O:N,O:i,O:O}", names[SHAPE], shape, names[TYPESTR], facts->typestr,
                         names[DATA], pointer, readonly ? Py_True : Py_False,
                         names[STRIDES], strides, names[VERSION], 3, names[STREAM], Py_None);
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
