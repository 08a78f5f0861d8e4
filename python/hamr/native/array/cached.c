#include "array/cached.h"

#include "array/access.h"
#include "array/array.h"
#include "array/snapshot.h"
#include "base/python.h"
#include "core/errors.h"

static int changed(const Array *self) {
    hamr_error *error = array_changed(self);
    return error ? core_raise(error) : 0;
}

/* _cache(on): whether its temporaries are kept. */
PyObject *array_method_cache(PyObject *object, PyObject *on) {
    Array *self = (Array *)object;
    OPEN(self);
    if (!PyBool_Check(on)) return PyErr_Format(PyExc_TypeError, "on is %R: accepted are True and False", on);
    int was = self->cached;
    self->cached = on == Py_True;
    if (was && !self->cached && changed(self) < 0) return NULL;
    Py_RETURN_NONE;
}

/* _changed(): others have written the elements. The core has to know the memory: what is
 * kept may be of the same bytes by another buffer. */
PyObject *array_method_changed(PyObject *object, PyObject *Py_UNUSED(unused)) {
    Array *self = (Array *)object;
    OPEN(self);
    if (array_usable(self) < 0) return NULL;
    Array *source = array_pin(self);
    if (!source) return NULL;
    int failed = changed(source);
    Py_DECREF((PyObject *)source);
    if (failed < 0) return NULL;
    Py_RETURN_NONE;
}
