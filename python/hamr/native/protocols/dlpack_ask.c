/* Asking an object for a tensor: by the C functions that its type offers, else by
 * __dlpack_device__() and __dlpack__(). */
#include "protocols/dlpack_ask.h"

#include <string.h>

#include "array/array.h"
#include "base/containers.h"
#include "base/python.h"
#include "base/streams.h"
#include "core/core.h"
#include "plain/dlpack.h"
#include "protocols/dlpack_device.h"
#include "protocols/dlpack_import.h"

enum { EXCHANGE_API, DLPACK, DLPACK_DEVICE, STREAM, MAX_VERSION, COPY, DICT, MODULE, TORCH, TENSOR, REQUIRES_GRAD,
      IS_CONJ, IS_NEG, NAMES };
static PyObject *names[NAMES], *newest, *no_arguments;

int dlpack_ask_setup(void) {
    static const char *const texts[NAMES] = {
        [EXCHANGE_API] = "__dlpack_c_exchange_api__", [DLPACK] = "__dlpack__", [DLPACK_DEVICE] = "__dlpack_device__",
        [STREAM] = "stream", [MAX_VERSION] = "max_version", [COPY] = "copy", [DICT] = "__dict__",
        [MODULE] = "__module__", [TORCH] = "torch", [TENSOR] = "Tensor",
        [REQUIRES_GRAD] = "requires_grad", [IS_CONJ] = "is_conj", [IS_NEG] = "is_neg",
    };
    if (intern_names(names, texts, NAMES) < 0) return -1;
    if (!newest && !(newest = Py_BuildValue("(ii)", DLPACK_MAJOR, DLPACK_MINOR))) return -1;
    return no_arguments || (no_arguments = PyTuple_New(0)) ? 0 : -1;
}

/* Producers whose arrays never change, by the module of their type. Capsules say so since
 * DLPack 1.0 only. -1: an error. */
static int is_immutable(PyTypeObject *type) {
    PyObject *module = PyObject_GetAttr((PyObject *)type, names[MODULE]);
    if (!module) return -1;
    const char *name = PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : "";
    int found = !name ? -1 : strncmp(name, "jaxlib.", 7) == 0 || strncmp(name, "jax.", 4) == 0;
    Py_DECREF(module);
    return found;
}

/* Whether a type is torch.Tensor or one of its own, whose views may be the conjugate or
 * the negative of what is in memory, which DLPack cannot say. -1: an error. */
static int is_torch(PyTypeObject *type) {
    PyObject *module = PyImport_GetModule(names[TORCH]);
    PyObject *tensor = module ? PyObject_GetAttr(module, names[TENSOR]) : NULL;
    Py_XDECREF(module);
    if (!tensor) {
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        return 0;
    }
    int found = PyType_Check(tensor) && PyType_IsSubtype(type, (PyTypeObject *)tensor);
    Py_DECREF(tensor);
    return found;
}

/* Whether an attribute, or what it returns, is true; -1: an error. */
static int truth(PyObject *object, int name, int is_method) {
    PyObject *value = is_method ? PyObject_CallMethodObjArgs(object, names[name], NULL)
        : PyObject_GetAttr(object, names[name]);
    int result = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return result;
}

/* What there is to know of a type. */
typedef struct {
    PyTypeObject *type;
    const DLPackExchangeAPI *api; /* NULL: objects are asked by their methods */
    int torch, immutable;
} Producer;

#define MOST_PRODUCERS 8
static Producer producers[MOST_PRODUCERS]; /* their types are kept for ever */
static int producer_count;

static const DLPackExchangeAPI *read_api(PyTypeObject *type) {
    PyObject *capsule = PyObject_GetAttr((PyObject *)type, names[EXCHANGE_API]);
    const DLPackExchangeAPIHeader *header = capsule && PyCapsule_CheckExact(capsule)
        ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    while (header && header->version.major != DLPACK_MAJOR) header = header->prev_api;
    Py_XDECREF(capsule); /* what it points to lives as long as the process */
    const DLPackExchangeAPI *api = (const DLPackExchangeAPI *)header;
    return api && api->managed_tensor_from_py_object_no_sync && api->current_work_stream ? api : NULL;
}

static int look_at(PyTypeObject *type, Producer *producer) {
    /* A type's own functions only: those that it inherits do not know what it overrides. */
    PyObject *own = PyObject_GetAttr((PyObject *)type, names[DICT]);
    int offers = own ? PySequence_Contains(own, names[EXCHANGE_API]) : -1;
    Py_XDECREF(own);
    *producer = (Producer){.type = type, .api = offers > 0 ? read_api(type) : NULL};
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
        PyErr_Clear();
    }
    producer->torch = is_torch(type);
    producer->immutable = producer->torch < 0 ? -1 : is_immutable(type);
    if (producer->immutable < 0) return -1;
    /* Remembered are types that do not end, and those that come often. */
    int lasts = producer->api || !(PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE);
    if (lasts && producer_count < MOST_PRODUCERS) {
        Py_INCREF((PyObject *)type);
        producers[producer_count++] = *producer;
    }
    return 0;
}

static int find_producer(PyTypeObject *type, Producer *producer) {
    for (int i = 0; i < producer_count; i++)
        if (producers[i].type == type) {
            *producer = producers[i];
            return 0;
        }
    return look_at(type, producer);
}

/* The C functions export what torch's __dlpack__ refuses: tensors that require grad, and
 * views that memory does not hold. */
static int torch_hides(PyObject *object) {
    int hides = truth(object, REQUIRES_GRAD, 0);
    if (!hides) hides = truth(object, IS_CONJ, 1);
    return hides ? hides : truth(object, IS_NEG, 1);
}

/* 1: result is set, to NULL with an exception if need be; 0: the methods know more. */
static int by_exchange(const Producer *producer, PyObject *object, Adoption *adoption, int wait, PyObject **result) {
    DLManagedTensorVersioned *tensor = NULL;
    *result = NULL;
    int hides = producer->torch ? torch_hides(object) : 0;
    if (hides) return hides < 0;
    if (producer->api->managed_tensor_from_py_object_no_sync(object, &tensor) != 0 || !tensor) {
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return 1;
        PyErr_Clear(); /* __dlpack__ raises what the protocol asks for */
        return 0;
    }
    if (tensor->version.major == DLPACK_MAJOR && wait && dlpack_is_cuda(tensor->dl_tensor.device.device_type)) {
        DLDevice device = tensor->dl_tensor.device;
        void *stream = NULL;
        if (producer->api->current_work_stream(device.device_type, device.device_id, &stream) != 0) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_BufferError, "%R does not say on which stream its work is",
                             (PyObject *)Py_TYPE(object));
            Raised raised = raised_take();
            if (tensor->deleter) tensor->deleter(tensor);
            raised_restore(raised);
            return 1;
        }
        adoption->producer = stream ? (uint64_t)(uintptr_t)stream : LEGACY_STREAM;
    }
    *result = dlpack_adopt_tensor(adoption, tensor);
    return 1;
}

static int is_none(PyObject *object, const char *name) {
    PyObject *value = PyObject_GetAttrString(object, name);
    if (!value) PyErr_Clear();
    Py_XDECREF(value);
    return value == Py_None;
}

/* Says what an object lacks, in place of the AttributeError of a method that is not there
 * (or the TypeError of one that is None, by which a class says that it has none). */
static void explain(PyObject *object) {
    int absent = PyErr_ExceptionMatches(PyExc_AttributeError);
    if (!PyType_Check(object) && !absent && !PyErr_ExceptionMatches(PyExc_TypeError)) return;
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    int offered = absent ? PyObject_HasAttrString(object, "__dlpack__") &&
        PyObject_HasAttrString(object, "__dlpack_device__") : 1;
    if (!PyType_Check(object) && offered && !is_none(object, "__dlpack__") && !is_none(object, "__dlpack_device__")) {
        PyErr_Restore(kind, value, traceback);
        return;
    }
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyObject *name = PyType_GetName(Py_TYPE(object));
    if (name)
        PyErr_Format(PyExc_TypeError,
                     "%U object cannot be shared by DLPack: accepted is what has __dlpack__ and __dlpack_device__, or "
                     "a DLPack capsule", name);
    Py_XDECREF(name);
}

/* The pair that __dlpack_device__() returns; -1 with an exception. */
static int read_device(PyObject *object, DLDevice *device) {
    PyObject *pair = PyObject_CallMethodObjArgs(object, names[DLPACK_DEVICE], NULL);
    if (!pair) return -1;
    int32_t numbers[2];
    int plain = PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
    for (Py_ssize_t i = 0; plain && i < 2; i++) {
        PyObject *number = PyNumber_Index(PyTuple_GetItem(pair, i));
        long wide = number ? PyLong_AsLong(number) : -1;
        Py_XDECREF(number);
        plain = !PyErr_Occurred() && wide >= INT32_MIN && wide <= INT32_MAX;
        numbers[i] = (int32_t)wide;
    }
    if (!plain && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception))) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "__dlpack_device__() of %R returned %R: accepted is (device type, number)",
                     (PyObject *)Py_TYPE(object), pair);
    }
    Py_DECREF(pair);
    if (!plain) return -1;
    *device = (DLDevice){numbers[0], numbers[1]};
    return 0;
}

/* Whether a CUDA device is known to be the calling thread's: torch exports what is on that one only. */
static int is_current(int32_t number) {
    const hamr_functions *functions = core_functions();
    if (!functions || functions->devices->cuda_count < 1) return 0;
    int current = 0;
    if (functions->devices->cuda_count > 1 &&
        (!functions->devices->cuda_current || functions->devices->cuda_current(&current) != 0))
        return 0;
    return current == number;
}

static PyObject *call(PyObject *method, PyObject *stream, PyObject *version, PyObject *copy) {
    PyObject *keywords = PyDict_New();
    if (!keywords) return NULL;
    PyObject *result = NULL;
    if ((!stream || PyDict_SetItem(keywords, names[STREAM], stream) == 0) &&
        (!version || PyDict_SetItem(keywords, names[MAX_VERSION], version) == 0) &&
        (!copy || PyDict_SetItem(keywords, names[COPY], copy) == 0))
        result = PyObject_Call(method, no_arguments, keywords);
    Py_DECREF(keywords);
    return result;
}

/* Raises the current error in the context of an earlier one, which is taken over. */
static void in_context_of(PyObject *earlier) {
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    PyErr_NormalizeException(&kind, &value, &traceback);
    PyObject *context = value && value != earlier ? PyException_GetContext(value) : NULL;
    if (value && value != earlier && !context) PyException_SetContext(value, Py_NewRef(earlier));
    Py_XDECREF(context);
    Py_DECREF(earlier);
    PyErr_Restore(kind, value, traceback);
}

/* The capsule of an object. Producers of before version 1, and of before copy, do not
 * know all the keywords; they are not asked where versioned is true. */
static PyObject *ask(PyObject *object, PyObject *stream, PyObject *copy, int versioned) {
    PyObject *method = PyObject_GetAttr(object, names[DLPACK]);
    if (!method) {
        explain(object);
        return NULL;
    }
    if (method == Py_None) {
        PyErr_SetString(PyExc_AttributeError, "__dlpack__");
        explain(object);
        Py_DECREF(method);
        return NULL;
    }
    PyObject *capsule = call(method, stream, newest, copy), *earlier = NULL;
    for (int fewer = !copy; !capsule && fewer < 2 - versioned && PyErr_ExceptionMatches(PyExc_TypeError); fewer++) {
        PyObject *kind, *value, *traceback;
        PyErr_Fetch(&kind, &value, &traceback);
        PyErr_NormalizeException(&kind, &value, &traceback);
        if (traceback) PyException_SetTraceback(value, traceback);
        Py_XDECREF(kind);
        Py_XDECREF(traceback);
        if (earlier) Py_XDECREF(value);
        else earlier = value;
        capsule = call(method, stream, fewer ? NULL : newest, NULL);
    }
    Py_DECREF(method);
    if (earlier) {
        if (capsule) Py_DECREF(earlier);
        else in_context_of(earlier);
    }
    if (capsule && !PyCapsule_CheckExact(capsule)) {
        PyErr_Format(PyExc_TypeError, "__dlpack__() of %R returned %R: accepted is a capsule",
                     (PyObject *)Py_TYPE(object), capsule);
        Py_CLEAR(capsule);
    }
    if (capsule && versioned && !PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        PyErr_Format(PyExc_BufferError, "__dlpack__() of %R returned a tensor without a version",
                     (PyObject *)Py_TYPE(object));
        Py_CLEAR(capsule);
    }
    return capsule;
}

/* What to pass as stream; NULL without an exception for memory that the host uses. */
static PyObject *stream_for(int32_t device_type, uint64_t stream, int wait) {
    if (!dlpack_is_cuda(device_type) && device_type != kDLROCM) return NULL;
    if (!wait) return PyLong_FromLong(-1);
    return PyLong_FromUnsignedLongLong(stream || device_type == kDLROCM ? stream : LEGACY_STREAM);
}

static PyObject *by_methods(const Producer *producer, PyObject *object, Adoption *adoption, int wait, PyObject *copy,
                            int current, int versioned) {
    DLDevice device;
    if (PyType_Check(object) || read_device(object, &device) < 0) {
        explain(object);
        return NULL;
    }
    if (dlpack_check_device(device.device_type, device.device_id) < 0) return NULL;
    if (device.device_type == kDLCUDA && !current && !is_current(device.device_id)) Py_RETURN_NONE;
    int negative = producer->torch ? truth(object, IS_NEG, 1) : 0; /* torch does not refuse them */
    if (negative) {
        if (negative > 0)
            PyErr_SetString(PyExc_BufferError,
                            "the tensor is the negative of what is in its memory, which DLPack cannot say: pass "
                            "x.resolve_neg()");
        return NULL;
    }
    PyObject *stream = stream_for(device.device_type, adoption->stream, wait);
    if (!stream && PyErr_Occurred()) return NULL;
    adoption->immutable = producer->immutable;
    if (wait) adoption->producer = adoption->stream ? adoption->stream : LEGACY_STREAM;
    PyObject *capsule = ask(object, stream, copy, versioned);
    Py_XDECREF(stream);
    if (!capsule) return NULL;
    PyObject *array = dlpack_adopt_capsule(adoption, capsule), *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback); /* a capsule's destructor may know nothing of exceptions */
    Py_DECREF(capsule);
    PyErr_Restore(kind, value, traceback);
    return array;
}

/* adopt_dlpack(type, object, stream, transfer, wait[, copy[, current[, versioned]]]): share what object exports. copy
 * is False where the producer must not make one, else None. None if object is on a device that is not known to be
 * current, unless current is true. versioned is whether a tensor of before version 1 is refused. */
PyObject *adopt_dlpack(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    if (n < 5 || n > 8) return PyErr_Format(PyExc_TypeError, "adopt_dlpack takes 5 to 8 arguments, got %zd", n);
    if (!is_array_type(arguments[0])) return NULL;
    PyObject *object = arguments[1], *copy = n > 5 && arguments[5] != Py_None ? arguments[5] : NULL;
    Adoption adoption = {.type = (PyTypeObject *)arguments[0], .never_copied = copy != NULL};
    adoption.stream = PyLong_AsUnsignedLongLong(arguments[2]);
    adoption.transfer = (int32_t)PyLong_AsLong(arguments[3]);
    int wait = PyObject_IsTrue(arguments[4]), current = n > 6 ? PyObject_IsTrue(arguments[6]) : 0;
    int versioned = n > 7 ? PyObject_IsTrue(arguments[7]) : 0;
    if (wait < 0 || current < 0 || versioned < 0 || PyErr_Occurred()) return NULL;
    if (PyCapsule_CheckExact(object)) {
        /* Its producer was told of no stream, which means the default one. */
        if (wait) adoption.producer = LEGACY_STREAM;
        return dlpack_adopt_capsule(&adoption, object);
    }
    Producer producer;
    if (find_producer(Py_TYPE(object), &producer) < 0) return NULL;
    PyObject *array;
    if (producer.api && by_exchange(&producer, object, &adoption, wait, &array)) return array;
    return by_methods(&producer, object, &adoption, wait, copy, current, versioned);
}

PyMethodDef dlpack_functions[] = {
    {"adopt_dlpack", FAST(adopt_dlpack), METH_FASTCALL,
     "adopt_dlpack(type, object, stream, transfer, wait, copy, current, versioned): share what an object exports by "
     "DLPack; None if its device is to be made current first."},
    {NULL, NULL, 0, NULL},
};
