#include "native.h"

static int setup(PyObject *module) {
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "hamr does not work in sub-interpreters: the Go runtime belongs to the process");
        return -1;
    }
    if (core_setup() < 0 || block_setup(module) < 0 || array_setup(module) < 0 || result_setup(module) < 0 ||
        cuda_interface_setup() < 0 || owner_setup() < 0 || dlpack_exchange_setup() < 0 ||
        dlpack_ask_setup() < 0 || adopt_known_setup() < 0 || stream_life_setup(module) < 0)
        return -1;
    if (PyModule_AddFunctions(module, core_methods) < 0) return -1;
    if (PyModule_AddFunctions(module, result_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, block_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, access_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, owner_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, dlpack_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, dlpack_exchange_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, arrow_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, change_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, stream_life_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, allocator_functions) < 0) return -1;
    if (PyModule_AddFunctions(module, adopt_known_functions) < 0) return -1;
    return PyModule_AddFunctions(module, adopt_functions);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, setup},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "hamr._native",
    .m_doc = "Objects that only C can make for CPython: memory with a buffer slot and a destructor.",
    .m_size = 0,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
