#include "base/exclusive.h"

#ifdef Py_GIL_DISABLED

#include <stdlib.h>

#include "base/python.h"

static PyObject *everything; /* whose lock is the section's */

/* CPython's tags of pointers to sections, which its headers do not name. */
enum { INACTIVE = 1, TAGS = 3 };

/* CPython's sections may be entered twice, but by a detour: the outer one is suspended, and the
 * thread queues behind itself. Ends within calls are too frequent for that. The list is the thread's
 * own; what lies behind a suspended section is suspended, too. */
static int is_inside(PyThreadState *state) {
#if PY_VERSION_HEX < 0x030F0000 /* whose lists are known; a later one's are not looked at */
    uintptr_t tagged = state ? state->critical_section : 0;
    while (tagged && !(tagged & INACTIVE)) {
        const PyCriticalSection *section = (const PyCriticalSection *)(tagged & ~(uintptr_t)TAGS);
        if (section->_cs_mutex == &everything->ob_mutex) return 1;
        tagged = section->_cs_prev;
    }
#else
    (void)state;
#endif
    return 0;
}

void exclusive_begin(Exclusive *here) {
    here->nested = is_inside(PyThreadState_Get());
    if (!here->nested) PyCriticalSection_Begin(&here->section, everything);
}

void exclusive_end(Exclusive *here) {
    if (!here->nested) PyCriticalSection_End(&here->section);
}

/* CPython stops all threads before a fork, and who is stopped is in no section. But one that was waiting
 * may just have been handed the lock. */
void exclusive_forget(void) {
    if (everything && !is_inside(PyThreadState_GetUnchecked())) everything->ob_mutex = (PyMutex){0};
}

/* CPython's tables have no room for what a function is to call. So there are many functions of each
 * kind, each of which calls what is in its place of a table. */
#define TEN(of, n) of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7) of(n##8) of(n##9)
#define HUNDRED(of) \
    TEN(of, 10) TEN(of, 11) TEN(of, 12) TEN(of, 13) TEN(of, 14) \
    TEN(of, 15) TEN(of, 16) TEN(of, 17) TEN(of, 18) TEN(of, 19)
#define FIRST 100

typedef void (*Function)(void);

typedef struct {
    const char *name;
    Function *called;
    const Function *callers;
    size_t count;
} Kind;

#define CALLER(kind, type, parameters, arguments, n)                            \
    static type kind##_##n parameters {                                         \
        type result;                                                            \
        EXCLUSIVE_BEGIN                                                         \
        result = ((type(*) parameters)kind##_called[(n) - FIRST]) arguments;    \
        EXCLUSIVE_END                                                           \
        return result;                                                          \
    }
#define KIND(kind) {#kind, kind##_called, kind##_callers, sizeof kind##_callers / sizeof *kind##_callers}

static Function binary_called[100];
#define BINARY(n) CALLER(binary, PyObject *, (PyObject *self, PyObject *argument), (self, argument), n)
#define BINARY_NAME(n) (Function)binary_##n,
HUNDRED(BINARY)
static const Function binary_callers[] = {HUNDRED(BINARY_NAME)};

static Function fast_called[100];
#define FASTCALL(n) \
    CALLER(fast, PyObject *, (PyObject *self, PyObject *const *arguments, Py_ssize_t count), \
           (self, arguments, count), n)
#define FASTCALL_NAME(n) (Function)fast_##n,
HUNDRED(FASTCALL)
static const Function fast_callers[] = {HUNDRED(FASTCALL_NAME)};

static Function named_called[100];
#define NAMED(n) \
    CALLER(named, PyObject *, (PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names), \
           (self, arguments, count, names), n)
#define NAMED_NAME(n) (Function)named_##n,
HUNDRED(NAMED)
static const Function named_callers[] = {HUNDRED(NAMED_NAME)};

static Function ternary_called[10];
#define TERNARY(n) \
    CALLER(ternary, PyObject *, (PyObject *self, PyObject *arguments, PyObject *names), (self, arguments, names), n)
#define TERNARY_NAME(n) (Function)ternary_##n,
TEN(TERNARY, 10)
static const Function ternary_callers[] = {TEN(TERNARY_NAME, 10)};

static Function unary_called[10];
#define UNARY(n) CALLER(unary, PyObject *, (PyObject *self), (self), n)
#define UNARY_NAME(n) (Function)unary_##n,
TEN(UNARY, 10)
static const Function unary_callers[] = {TEN(UNARY_NAME, 10)};

static Function question_called[10];
#define QUESTION(n) CALLER(question, int, (PyObject *self), (self), n)
#define QUESTION_NAME(n) (Function)question_##n,
TEN(QUESTION, 10)
static const Function question_callers[] = {TEN(QUESTION_NAME, 10)};

static Function length_called[10];
#define LENGTH(n) CALLER(length, Py_ssize_t, (PyObject *self), (self), n)
#define LENGTH_NAME(n) (Function)length_##n,
TEN(LENGTH, 10)
static const Function length_callers[] = {TEN(LENGTH_NAME, 10)};

static Function exporter_called[10];
#define EXPORTER(n) CALLER(exporter, int, (PyObject *self, Py_buffer *view, int flags), (self, view, flags), n)
#define EXPORTER_NAME(n) (Function)exporter_##n,
TEN(EXPORTER, 10)
static const Function exporter_callers[] = {TEN(EXPORTER_NAME, 10)};

/* Whoever waits for the section lets the collector run, which takes what it finds without references for garbage. */
static Function end_called[10];
#define END(n)                                                    \
    static void end_##n(PyObject *self) {                         \
        if (PyType_IS_GC(Py_TYPE(self))) PyObject_GC_UnTrack(self); \
        EXCLUSIVE_BEGIN                                           \
        ((void (*)(PyObject *))end_called[(n) - FIRST])(self);    \
        EXCLUSIVE_END                                             \
    }
#define END_NAME(n) (Function)end_##n,
TEN(END, 10)
static const Function end_callers[] = {TEN(END_NAME, 10)};

static Function release_called[10];
#define RELEASE(n)                                                                     \
    static void release_##n(PyObject *self, Py_buffer *view) {                         \
        EXCLUSIVE_BEGIN                                                                \
        ((void (*)(PyObject *, Py_buffer *))release_called[(n) - FIRST])(self, view);  \
        EXCLUSIVE_END                                                                  \
    }
#define RELEASE_NAME(n) (Function)release_##n,
TEN(RELEASE, 10)
static const Function release_callers[] = {TEN(RELEASE_NAME, 10)};

static const Kind binary = KIND(binary), fast = KIND(fast), named = KIND(named), ternary = KIND(ternary),
                  unary = KIND(unary), question = KIND(question), length = KIND(length), exporter = KIND(exporter),
                  end = KIND(end), release = KIND(release);

/* What calls a function in the section: one that does already is its own. NULL, with an exception. */
static Function caller_of(const Kind *kind, Function function) {
    for (size_t i = 0; i < kind->count; i++)
        if (kind->callers[i] == function) return function;
    for (size_t i = 0; i < kind->count; i++) {
        if (kind->called[i] && kind->called[i] != function) continue;
        kind->called[i] = function;
        return kind->callers[i];
    }
    return PyErr_Format(PyExc_SystemError, "base/exclusive.c has too few functions of the kind %s", kind->name);
}

static int change_function(PyMethodDef *function) {
    const Kind *kind = NULL;
    switch (function->ml_flags & (METH_VARARGS | METH_KEYWORDS | METH_NOARGS | METH_O | METH_FASTCALL)) {
    case METH_NOARGS:
    case METH_O:
    case METH_VARARGS: kind = &binary; break;
    case METH_FASTCALL: kind = &fast; break;
    case METH_FASTCALL | METH_KEYWORDS: kind = &named; break;
    default: return RAISE(PyExc_SystemError, "base/exclusive.c does not know how %s is called", function->ml_name);
    }
    Function caller = caller_of(kind, (Function)function->ml_meth);
    if (!caller) return -1;
    function->ml_meth = (PyCFunction)caller;
    return 0;
}

static int wrap_functions(PyMethodDef *functions) {
    for (; functions->ml_name; functions++)
        if (change_function(functions) < 0) return -1;
    return 0;
}

typedef struct {
    getter get;
    void *closure;
} Getter;

static PyObject *get_in_section(PyObject *self, void *closure) {
    const Getter *getter = closure;
    PyObject *result;
    EXCLUSIVE_BEGIN
    result = getter->get(self, getter->closure);
    EXCLUSIVE_END
    return result;
}

static int change_attributes(PyGetSetDef *attribute) {
    for (; attribute->name; attribute++) {
        if (attribute->get == get_in_section) continue;
        Getter *getter = malloc(sizeof *getter); /* for as long as there is the type */
        if (!getter || attribute->set) {
            free(getter);
            return RAISE(PyExc_SystemError, "base/exclusive.c cannot serve the attribute %s", attribute->name);
        }
        *getter = (Getter){attribute->get, attribute->closure};
        attribute->get = get_in_section;
        attribute->closure = getter;
    }
    return 0;
}

static int change_slot(PyType_Slot *slot) {
    const Kind *kind = NULL;
    switch (slot->slot) {
    case Py_tp_doc:
    case Py_tp_members:
    case Py_tp_traverse: return 0; /* the collector has stopped all threads */
    case Py_tp_methods: return wrap_functions(slot->pfunc);
    case Py_tp_getset: return change_attributes(slot->pfunc);
    case Py_tp_new:
    case Py_tp_call: kind = &ternary; break;
    case Py_tp_repr: kind = &unary; break;
    case Py_tp_clear: kind = &question; break;
    case Py_tp_dealloc: kind = &end; break;
    case Py_mp_length: kind = &length; break;
    case Py_bf_getbuffer: kind = &exporter; break;
    case Py_bf_releasebuffer: kind = &release; break;
    default: PyErr_Format(PyExc_SystemError, "base/exclusive.c does not know slot %d", slot->slot); return -1;
    }
    Function caller = caller_of(kind, (Function)slot->pfunc);
    if (!caller) return -1;
    slot->pfunc = (void *)caller;
    return 0;
}

PyObject *exclusive_type(PyObject *module, PyType_Spec *spec, PyObject *base) {
    for (PyType_Slot *slot = spec->slots; slot->slot; slot++)
        if (change_slot(slot) < 0) return NULL;
    return PyType_FromModuleAndSpec(module, spec, base);
}

int exclusive_functions(PyObject *module, PyMethodDef *functions) {
    return wrap_functions(functions) < 0 ? -1 : PyModule_AddFunctions(module, functions);
}

PyObject *exclusive_function(PyMethodDef *function, PyObject *self, PyObject *module) {
    return change_function(function) < 0 ? NULL : PyCFunction_NewEx(function, self, module);
}

int exclusive_setup(void) {
    if (!everything) everything = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    return everything ? 0 : -1;
}

#endif
