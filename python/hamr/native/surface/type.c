/* The type that Buffer and Handle are made from. */
#include "surface/type.h"

#include "array/access.h"
#include "array/array.h"
#include "array/cached.h"
#include "array/construct.h"
#include "array/snapshot.h"
#include "base/heap_type.h"
#include "base/python.h"
#include "protocols/arrow_export.h"
#include "protocols/buffer_slot.h"
#include "protocols/dlpack_export.h"
#include "surface/attributes.h"

#define ACCESSOR(space, number, name, code)                                                                \
    {"get_" #name "_accessible", FAST(get_##name##_accessible), METH_FASTCALL | METH_KEYWORDS,              \
     "get_" #name "_accessible($self, device=-1)\n--\n\n"                                                   \
     "A Handle: the elements where " code " code on a device reaches them; -1 is the current one."},

static PyMethodDef methods[] = {
    {"_close", array_method_close, METH_NOARGS, "_close($self)\n--\n\n"},
    {"_empty", array_method_empty, METH_NOARGS, "_empty($self)\n--\n\n"},
    {"_set_order", array_method_set_order, METH_VARARGS, "_set_order($self, stream, transfer, order=None, /)\n--\n\n"},
    {"_snapshot", array_method_snapshot, METH_O, "_snapshot($self, type, /)\n--\n\n"},
    {"_pin", array_method_pin, METH_NOARGS, "_pin($self)\n--\n\n"},
    {"_keep", array_method_keep, METH_O, "_keep($self, snapshot, /)\n--\n\n"},
    {"_swap", array_method_swap, METH_O, "_swap($self, other, /)\n--\n\n"},
    {"_cache", array_method_cache, METH_O, "_cache($self, on, /)\n--\n\n"},
    {"_changed", array_method_changed, METH_NOARGS, "_changed($self)\n--\n\n"},
    {"get_host_accessible", FAST(get_host_accessible), METH_FASTCALL | METH_KEYWORDS,
     "get_host_accessible($self)\n--\n\nA Handle: the elements where the host reaches them, in place or in a "
     "temporary."},
    HAMR_DEVICE_SPACES(ACCESSOR)
    {"__dlpack__", FAST(array_dlpack), METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nA DLPack capsule of the "
     "elements."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\nThe device, as DLPack counts: (type, number)."},
    {"__arrow_c_array__", FAST(array_arrow), METH_FASTCALL | METH_KEYWORDS,
     "__arrow_c_array__($self, requested_schema=None)\n--\n\nTwo Arrow capsules, schema and array, of the elements of "
     "one dimension, shared, where the host reaches them.\n\n"
     "Arrow takes them for immutable: do not change the buffer while others read it so."},
    {"__arrow_c_device_array__", FAST(array_arrow_device), METH_FASTCALL | METH_KEYWORDS,
     "__arrow_c_device_array__($self, requested_schema=None, **kwargs)\n--\n\nTwo Arrow capsules, schema and array, "
     "of the elements of one dimension, shared, wherever they are.\n\n"
     "Work that is pending on them is waited for. Arrow takes them for immutable: do not change the buffer while "
     "others read it so."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, array_construct},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_traverse, array_traverse},
    {Py_tp_clear, array_clear},
    {Py_tp_getset, array_attributes},
    {Py_tp_members, array_members},
    {Py_tp_methods, methods},
    {Py_mp_length, array_length},
    {Py_bf_getbuffer, array_getbuffer},
    {Py_bf_releasebuffer, array_releasebuffer},
    {Py_tp_doc, "Array()\n--\n\nAn array in some memory: the base of Buffer and Handle."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "hamr._native.Array",
    .basicsize = sizeof(Array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int type_setup(PyObject *module) {
    return type_add(module, &array_type, &spec, NULL);
}
