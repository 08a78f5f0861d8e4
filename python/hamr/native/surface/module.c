#include "array/access.h"
#include "array/changes.h"
#include "array/construct.h"
#include "array/copy.h"
#include "array/create.h"
#include "array/description.h"
#include "array/element.h"
#include "array/lend.h"
#include "array/share.h"
#include "array/shared_handle.h"
#include "array/wait.h"
#include "base/exclusive.h"
#include "base/lock.h"
#include "base/numbers.h"
#include "base/python.h"
#include "base/tables.h"
#include "base/timer.h"
#include "core/core.h"
#include "core/granting.h"
#include "core/machine.h"
#include "core/relief.h"
#include "core/replies.h"
#include "core/stacks.h"
#include "kernels/code.h"
#include "kernels/compile.h"
#include "kernels/kernel.h"
#include "kernels/launch.h"
#include "memory/block.h"
#include "memory/owner.h"
#include "memory/stream_life.h"
#include "protocols/adopt_known.h"
#include "protocols/array_interface.h"
#include "protocols/arrow_import.h"
#include "protocols/buffer_import.h"
#include "protocols/cuda_interface.h"
#include "protocols/dlpack_ask.h"
#include "protocols/dlpack_exchange.h"
#include "protocols/many.h"
#include "protocols/plain_calls.h"
#include "scheduling/context.h"
#include "scheduling/events.h"
#include "scheduling/placed.h"
#include "scheduling/product.h"
#include "store/object.h"
#include "store/owned.h"
#include "store/several.h"
#include "store/session.h"
#include "store/setters.h"
#include "surface/c_interface.h"
#include "surface/fork.h"
#include "surface/type.h"

static PyMethodDef *const functions[] = {
    core_methods, reply_functions, granting_methods, relief_methods, stacks_methods, machine_functions, fork_functions,
    wait_functions,
        share_functions, array_interface_functions, block_functions, access_functions, adopt_known_functions,
    owned_functions, owner_functions, dlpack_functions, copy_functions, arrow_functions, change_functions,
    many_functions, stream_life_functions,
    table_functions, array_element_functions, number_functions, create_functions, construct_functions,
    plain_call_functions, buffer_import_functions, lend_functions, timer_functions, context_functions, event_functions,
    launch_functions, kernel_functions, compile_functions, object_functions, several_functions, session_functions,
    setter_functions,
};

static int setup(PyObject *module) {
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
        return RAISE(PyExc_ImportError,
                     "hamr does not work in sub-interpreters: the Go runtime belongs to the process");
    if (exclusive_setup() < 0 || core_setup(module) < 0 || fork_setup() < 0 || block_setup(module) < 0 ||
        type_setup(module) < 0 ||
        description_setup() < 0 || cuda_interface_setup() < 0 || lock_setup() < 0 || owner_setup() < 0 ||
        dlpack_exchange_setup() < 0 ||
        dlpack_ask_setup() < 0 || adopt_known_setup() < 0 || share_setup() < 0 || shared_handle_setup(module) < 0 ||
        construct_setup(module) < 0 || stream_life_setup(module) < 0 ||
        owned_setup(module) < 0 || object_setup() < 0 || placed_setup(module) < 0 || product_setup(module) < 0 ||
        context_setup(module) < 0 ||
        launch_setup() < 0 || code_setup(module) < 0 || kernel_setup(module) < 0 || c_interface_setup(module) < 0)
        return -1;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (exclusive_functions(module, functions[i]) < 0) return -1;
#ifdef HAMR_IN_PLACE /* build_support/staleness.py wrote it */
    PyObject *said = PyImport_ImportModule("hamr._gopy.in_place");
    if (!said) return -1;
    Py_DECREF(said);
#endif
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, setup},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* base/exclusive.h says what stands for it */
#endif
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
