/* What exports a buffer that was adopted, and Python's cycle collector.
 *
 * Before CPython 3.12.7 the collector ends a memoryview in a cycle though it is exported,
 * and crashes at its release (CPython's issue 77894). Exporters of a __buffer__ in Python
 * have one inside CPython's wrapper for them. Neither is shown to such a collector. */
#include "memory/view.h"

#include "base/python.h"
#include "plain/layout.h"

static int spares_exported(void) {
    return Py_Version >= 0x030D00F0 || (Py_Version >= 0x030C07F0 && Py_Version < 0x030D0000);
}

static PyTypeObject *wrapper_type; /* CPython's own, which it does not name; NULL until one was seen */

static int is_wrapper(PyObject *exporter) {
    PyTypeObject *type = Py_TYPE(exporter);
    if (wrapper_type || PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE) return type == wrapper_type;
    PyObject *name = PyType_GetName(type);
    if (name && PyUnicode_CompareWithASCIIString(name, "_buffer_wrapper") == 0) wrapper_type = type;
    Py_XDECREF(name);
    PyErr_Clear();
    return type == wrapper_type;
}

int view_may_be_seen(const Py_buffer *view) {
    PyObject *exporter = view->obj;
    return exporter && (spares_exported() || (!PyMemoryView_Check(exporter) && Py_TYPE(exporter) != wrapper_type));
}

static uint64_t address_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

/* Whether a view has all bytes from low to high. */
static int covers(const Py_buffer *view, uint64_t low, uint64_t high) {
    uint64_t first = address_of(view->buf), end = first + (uint64_t)view->len;
    if (view->suboffsets || (view->ndim > 1 && !view->shape)) return 0;
    if (view->strides && view->shape) {
        hamr_array array = {.element = HAMR_UINT8, .ndim = view->ndim, .shape = (int64_t *)view->shape,
                            .strides = (int64_t *)view->strides};
        int64_t from, to;
        if (array_span(&array, &from, &to) <= 0) return 0;
        end = first + (uint64_t)(to + view->itemsize - 1);
        first += (uint64_t)from;
    }
    return first <= low && high <= end;
}

/* A memoryview's memory is its exporter's, which locks it as well, and is seen. Exporters
 * that the collector does not know are in no cycle. */
Py_buffer *view_behind(Py_buffer *view, const hamr_array *array, const PyObject *object) {
    static PyObject *name;
    int64_t low = 0, high = 0;
    if (spares_exported() || !view->obj) return view;
    if (!PyMemoryView_Check(view->obj)) {
        if (view->obj != object) is_wrapper(view->obj); /* to be known when it is met again */
        return view;
    }
    if (!name) name = PyUnicode_InternFromString("obj");
    PyObject *exporter = name ? PyObject_GetAttr(view->obj, name) : NULL;
    int known = exporter && PyType_GetFlags(Py_TYPE(exporter)) & Py_TPFLAGS_HAVE_GC && !is_wrapper(exporter);
    Py_buffer *behind = known ? PyMem_Malloc(sizeof *behind) : NULL;
    int same = 0;
    if (behind && PyObject_GetBuffer(exporter, behind, PyBUF_FULL_RO) == 0) {
        if (array_span(array, &low, &high) <= 0) low = high = 0; /* no elements */
        same = view_may_be_seen(behind) &&
            covers(behind, array->pointer + (uint64_t)low, array->pointer + (uint64_t)high);
        if (!same) PyBuffer_Release(behind);
    }
    PyErr_Clear(); /* the memoryview will do */
    Py_XDECREF(exporter);
    Py_buffer *other = same ? view : behind;
    if (same) PyBuffer_Release(view);
    PyMem_Free(other);
    return same ? behind : view;
}
