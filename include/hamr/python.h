/* Buffers of hamr.h as Python's objects, and the reverse, without a copy. For extensions, and for
 * programs that embed Python. What is needed of Python is in its limited API, since version 3.11.
 *
 *     hamr_buffer *field;
 *     if (hamr_from_python(argument, &field)) return NULL;
 *     double *values = hamr_data(field);
 *     …
 *     PyObject *result = hamr_to_python(field);
 *     hamr_release(field);
 *     return result;
 *
 * Both sides then have the same memory, which lasts until the last of them gives it back; what one
 * writes the other sees. A change of a container, as by hamr_resize, is that container's alone. The
 * stream of a buffer is that of its other side: a hamr.Stream lasts as long as the memory, another one is kept by
 * whoever made it until both are done.
 *
 * Call these functions with the GIL. hamr_release needs none, and may be called on any thread, also
 * after Py_Finalize(). */
#ifndef HAMR_PYTHON_H
#define HAMR_PYTHON_H

#include <Python.h>

#include "hamr.h"

#define HAMR_PYTHON_API_VERSION 1u

#ifdef __cplusplus
extern "C" {
#endif

/* What the capsule hamr._C_API holds, which only grows at its end. */
typedef struct hamr_python_api {
    uint32_t version; /* HAMR_PYTHON_API_VERSION */
    uint32_t size;    /* bytes */
    PyObject *(*to_python)(const hamr_table *table, const hamr_buffer *buffer);
    int (*from_python)(const hamr_table *table, PyObject *object, hamr_buffer **made);
    void (*raise)(const hamr_failure *failure);
} hamr_python_api;

/* Shared by all of one extension or program that includes this. */
__attribute__((weak, visibility("hidden"))) const hamr_python_api *hamr_python_found;

/* NULL, with an exception. */
static inline const hamr_python_api *hamr_get_python(void) {
    const hamr_python_api *found = __atomic_load_n(&hamr_python_found, __ATOMIC_ACQUIRE);
    if (found) return found;
    if (!(found = (const hamr_python_api *)PyCapsule_Import("hamr._C_API", 0))) return NULL;
    if (found->version != HAMR_PYTHON_API_VERSION) {
        PyErr_Format(PyExc_ImportError, "hamr._C_API is of version %u: this extension was compiled for %u",
                     (unsigned)found->version, (unsigned)HAMR_PYTHON_API_VERSION);
        return NULL;
    }
    if (!hamr_get()) {
        PyErr_SetString(PyExc_ImportError, hamr_last_error());
        return NULL;
    }
    __atomic_store_n(&hamr_python_found, found, __ATOMIC_RELEASE);
    return found;
}

/* A new hamr.Buffer of the memory of a buffer, which stays the caller's to release. NULL, with an
 * exception: of ValueError for NULL, of hamr.FreedBuffer for one that was released. */
static inline PyObject *hamr_to_python(const hamr_buffer *buffer) {
    const hamr_python_api *python = hamr_get_python();
    return python ? python->to_python(hamr_get(), buffer) : NULL;
}

/* Sets *made to a new buffer of the memory of a hamr.Buffer, or of whatever hamr.buffer() accepts: 0.
 * -1, with an exception: of TypeError for what has no elements, or none that hamr has, of
 * hamr.FreedBuffer for a buffer that was closed. Whether elements are read-only, and of which type, is
 * in hamr_info_of(*made). */
static inline int hamr_from_python(PyObject *object, hamr_buffer **made) {
    const hamr_python_api *python = hamr_get_python();
    return python ? python->from_python(hamr_get(), object, made) : -1;
}

/* Makes the calling thread's last error in hamr.h Python's exception, of the class that hamr has for it: NULL. */
static inline PyObject *hamr_raise(void) {
    hamr_failure failure;
    hamr_last_failure(&failure);
    const hamr_python_api *python = hamr_get_python();
    if (python) python->raise(&failure);
    return NULL;
}

#ifdef __cplusplus
}
#endif

#endif
