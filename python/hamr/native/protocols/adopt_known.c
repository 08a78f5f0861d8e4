/* Sharing an object in one call, by the protocol that served its type before. */
#include "protocols/adopt_known.h"

#include "array/array.h"
#include "base/containers.h"
#include "base/python.h"
#include "protocols/buffer_import.h"
#include "protocols/cuda_interface.h"
#include "protocols/dlpack_ask.h"

enum { BUFFER, CUDA, DLPACK, PROTOCOLS };

static PyObject *names[PROTOCOLS]; /* what source_protocol says */
static PyObject *types[PROTOCOLS]; /* sets, which the dispatcher fills */
static PyObject *wait_of;
static PyObject *asker; /* the dispatcher, for all other types */
static PyObject *numbers[2]; /* the default stream, and the transfer mode of who names none, sync_host */

int adopt_known_setup(void) {
    static const char *const texts[PROTOCOLS] = {[BUFFER] = "buffer", [CUDA] = "__cuda_array_interface__",
                                                 [DLPACK] = "__dlpack__"};
    if (intern_names(names, texts, PROTOCOLS) < 0) return -1;
    for (int i = 0; i < 2; i++)
        if (!numbers[i] && !(numbers[i] = PyLong_FromLong(i))) return -1;
    return 0;
}

/* set_known_types(plain, cuda, dlpack, wait_of, ask) */
static PyObject *set_known_types(PyObject *Py_UNUSED(module), PyObject *arguments) {
    PyObject **const places[] = {&types[BUFFER], &types[CUDA], &types[DLPACK], &wait_of, &asker};
    PyObject *given[PROTOCOLS + 2];
    if (!PyArg_ParseTuple(arguments, "O!O!O!OO", &PySet_Type, &given[BUFFER], &PySet_Type, &given[CUDA], &PySet_Type,
                          &given[DLPACK], &given[PROTOCOLS], &given[PROTOCOLS + 1]))
        return NULL;
    for (int i = 0; i < PROTOCOLS + 2; i++) replace_reference(places[i], Py_NewRef(given[i]));
    Py_RETURN_NONE;
}

/* How many protocols there are if a type is not known, or -1. */
static int protocol_for(PyTypeObject *type) {
    for (int i = 0; i < PROTOCOLS; i++) {
        int known = types[i] ? PySet_Contains(types[i], (PyObject *)type) : 0;
        if (known) return known < 0 ? -1 : i;
    }
    return PROTOCOLS;
}

int is_plain_exporter(PyObject *object) {
    int known = types[BUFFER] ? PySet_Contains(types[BUFFER], (PyObject *)Py_TYPE(object)) : 0;
    if (known < 0) PyErr_Clear(); /* the general way meets it */
    return known > 0;
}

static PyObject *adopt_by(int protocol, PyObject *module, PyObject *const *arguments) {
    if (protocol == BUFFER) return adopt_buffer(module, arguments, 4);
    PyObject *wait = PyObject_CallFunctionObjArgs(wait_of, arguments[4], NULL);
    if (!wait) return NULL;
    PyObject *const given[] = {arguments[0], arguments[1], arguments[2], arguments[3], wait};
    PyObject *array = protocol == CUDA ? adopt_cuda(module, given, 5) : adopt_dlpack(module, given, 5);
    Py_DECREF(wait);
    return array;
}

/* adopt_known(type, object, stream, transfer, wait): None if the type of object is not
 * known, or if there is more to it than C reads. */
static PyObject *adopt_known(PyObject *module, PyObject *const *arguments, Py_ssize_t n) {
    if (arity(n, 5, "adopt_known") < 0) return NULL;
    int protocol = protocol_for(Py_TYPE(arguments[1]));
    if (protocol < 0) return NULL;
    if (protocol == PROTOCOLS) Py_RETURN_NONE;
    PyObject *array = adopt_by(protocol, module, arguments);
    if (array && array != Py_None) replace_reference(&((Array *)array)->source, Py_NewRef(names[protocol]));
    return array;
}

PyObject *adopt_plain(PyTypeObject *type, PyObject *object) {
    PyObject *const given[] = {(PyObject *)type, object, numbers[0], numbers[1], Py_None};
    return adopt_known(NULL, given, 5);
}

PyObject *adopt_asking(PyTypeObject *type, PyObject *object) {
    if (!asker) Py_RETURN_NONE;
    return PyObject_CallFunctionObjArgs(asker, (PyObject *)type, object, NULL);
}

PyMethodDef adopt_known_functions[] = {
    {"set_known_types", set_known_types, METH_VARARGS,
     "set_known_types(plain, cuda, dlpack, wait_of, ask): whose types the buffer protocol, __cuda_array_interface__ "
     "and __dlpack__ serve, who says whether to wait, and who shares objects of other types."},
    {"adopt_known", FAST(adopt_known), METH_FASTCALL,
     "adopt_known(type, object, stream, transfer, wait): share an object by the protocol that serves its type, or "
     "None."},
    {NULL, NULL, 0, NULL},
};
