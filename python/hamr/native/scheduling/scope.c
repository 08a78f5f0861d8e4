#include "scheduling/scope.h"

#include <dlfcn.h>
#include <string.h>

#include "array/construct.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "scheduling/placed.h"

/* Python's functions of context variables, which the limited API lacks; NULL: ask the object. */
static int (*variable_get)(PyObject *variable, PyObject *otherwise, PyObject **value);
static PyObject *(*variable_set)(PyObject *variable, PyObject *value);
static int (*variable_reset)(PyObject *variable, PyObject *token);

static PyObject *blocks_variable, *without_block;

void scope_set_hooks(PyObject *variable, PyObject *without) {
    replace_reference(&blocks_variable, Py_NewRef(variable));
    replace_reference(&without_block, Py_NewRef(without));
}

/* A new reference, or NULL with an exception. */
static PyObject *get_blocks(void) {
    PyObject *blocks = NULL;
    if (!variable_get) return PyObject_CallMethod(blocks_variable, "get", NULL);
    return variable_get(blocks_variable, NULL, &blocks) < 0 ? NULL : blocks;
}

/* The variable's token, or NULL with an exception. */
static PyObject *set_blocks(PyObject *blocks) {
    return variable_set ? variable_set(blocks_variable, blocks) : PyObject_CallMethod(blocks_variable, "set", "(O)",
                                                                                      blocks);
}

/* Whether the driver has made a context current. current is the one that was. */
static int set_directly(const hamr_devices *devices, void *context, void **current) {
    *current = NULL;
    return devices && devices->cuda_context(current) == 0 && (*current == context || devices->cuda_set(context) == 0);
}

/* Makes the device the thread's current one, of runtimes that have that. 0, or -1 with an exception. */
static int activate(Context *self) {
    const hamr_functions *functions;
    if (place_usable(&self->place, &functions) < 0) return -1;
    const hamr_devices *devices = place_driver(&self->place, functions);
    void *current;
    if (devices && set_directly(devices, devices->cuda_contexts[self->place.device], &current)) {
        self->before = (uint64_t)(uintptr_t)current;
    } else {
        int32_t has;
        hamr_error *error = functions->activate_if_current(self->place.backend, self->place.device, &self->before,
                                                           &has);
        if (error) return core_raise(error);
        if (!has) return 0;
    }
    self->activated = 1;
    return 0;
}

/* What was current before is so again. 0, or -1 with an exception. */
static int restore(Context *self) {
    const hamr_functions *functions = core_functions();
    if (!self->activated) return 0;
    self->activated = 0;
    if (self->place.generation != core_generation || !functions) return 0; /* the driver does not survive a fork */
    void *current;
    if (set_directly(place_driver(&self->place, functions), (void *)(uintptr_t)self->before, &current)) return 0;
    hamr_error *error = functions->restore(self->place.backend, self->before);
    return error ? core_raise(error) : 0;
}

/* The scope around one, as long as it lasts; borrowed. */
static Context *enclosing_of(const Context *self) {
    Context *around = self->enclosing;
    return around && around->outer && around->scope == self->enclosing_scope ? around : NULL;
}

/* The outermost scope of the same runtime, which has what is to be current while scopes are suspended; borrowed. */
static Context *root_of(Context *self) {
    Context *root = self;
    for (Context *around = enclosing_of(self); around; around = enclosing_of(around))
        if (strcmp(around->place.backend, self->place.backend) == 0) root = around;
    return root;
}

/* Whether the scope was entered in the context of variables, a task's or a thread's, that is current:
 * Python has its token there alone. */
static int entered_here(Context *self, PyObject *now) {
    if (!variable_reset || variable_reset(blocks_variable, self->token) < 0) {
        PyErr_Clear();
        return 0;
    }
    PyObject *token = set_blocks(now); /* of the same value before, so that it serves instead */
    if (!token) return -1;
    replace_reference(&self->token, token);
    return 1;
}

/* The innermost scope of the current task in its blocks, NULL for none and for one that is suspended. 0, or -1
 * with an exception. */
static int innermost(PyObject *blocks, Context **found) {
    *found = NULL;
    for (PyObject *block = blocks; block != Py_None; block = PyTuple_GetItem(block, 1)) {
        if (PyTuple_Size(block) != 3) continue; /* a stream's */
        Context *scope = (Context *)PyTuple_GetItem(block, 2);
        if (!scope->outer || scope->thread != PyThread_get_thread_ident()) continue;
        if (root_of(scope)->suspensions) return 0; /* as a maker's is, as a rule: sooner than what follows */
        int here = entered_here(scope, blocks);
        if (here > 0) *found = scope;
        return here < 0 ? -1 : 0;
    }
    return 0;
}

static int note_enclosing(Context *self, PyObject *outer) {
    Context *around;
    if (outer == Py_None) return 0;
    if (innermost(outer, &around) < 0) return -1;
    if (!around) return 0;
    self->enclosing = (Context *)Py_NewRef((PyObject *)around);
    self->enclosing_scope = around->scope;
    return 0;
}

static int enter_blocks(Context *self) {
    PyObject *outer = get_blocks();
    PyObject *blocks = outer && note_enclosing(self, outer) == 0 ? PyTuple_Pack(3, self->place.stream, outer,
                                                                                (PyObject *)self) : NULL;
    if (!blocks || (PyList_Size(blocks_entered) == 0 && PyList_Append(blocks_entered, Py_True) < 0) ||
        !(self->token = set_blocks(blocks))) {
        Py_XDECREF(outer);
        Py_XDECREF(blocks);
        Py_CLEAR(self->enclosing);
        return -1;
    }
    self->outer = outer;
    self->blocks = blocks;
    return 0;
}

void scope_forget(Context *self) {
    PyObject *blocks = self->blocks; /* which has the scope */
    self->blocks = NULL;
    Py_CLEAR(self->token);
    Py_CLEAR(self->outer);
    Py_CLEAR(self->enclosing);
    Py_XDECREF(blocks);
}

static int leave_blocks(Context *self) {
    PyObject *now = get_blocks(), *left = NULL;
    int failed = !now;
    if (now && (now != self->blocks || !variable_reset || variable_reset(blocks_variable, self->token) < 0)) {
        PyErr_Clear(); /* in another context than the token's: a task's copy */
        left = now == self->blocks ? Py_NewRef(self->outer) : PyObject_CallFunctionObjArgs(without_block, now,
                                                                                           self->place.stream, NULL);
        PyObject *token = left ? set_blocks(left) : NULL;
        failed = !token;
        Py_XDECREF(token);
    }
    Py_XDECREF(now);
    Py_XDECREF(left);
    scope_forget(self);
    return -failed;
}

int scope_enter(Context *self) {
    if (self->outer)
        return RAISE(PyExc_RuntimeError,
                     "a hamr.hetero.ScopedContext is one scope, which has been entered: make another one of the same "
                     "token");
    if (activate(self) < 0) return -1;
    if (enter_blocks(self) < 0) {
        Raised raised = raised_take();
        if (restore(self) < 0) PyErr_Clear();
        raised_restore(raised);
        return -1;
    }
    self->thread = PyThread_get_thread_ident();
    self->scope++;
    self->suspensions = 0;
    return 0;
}

static int on_own_thread(const Context *self) {
    if (self->thread == PyThread_get_thread_ident()) return 1;
    PyErr_SetString(PyExc_RuntimeError,
                    "the scope of a hamr.hetero.ScopedContext ends on another thread than it began on");
    return 0;
}

/* What was current before the scope is so again, or will be at the end of a suspension. 0, or -1 with an exception. */
static int end_activation(Context *self) {
    Context *root = self->enclosing ? root_of(self) : self;
    if (root == self || !root->suspensions || !self->activated) return restore(self);
    self->activated = 0;
    root->inside = self->before;
    return 0;
}

int scope_exit(Context *self) {
    if (!self->outer)
        return RAISE(PyExc_RuntimeError, "the scope of the hamr.hetero.ScopedContext has not been entered");
    if (!on_own_thread(self)) return -1;
    int failed = end_activation(self) < 0;
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    if (failed) PyErr_Fetch(&type, &value, &traceback);
    if (leave_blocks(self) < 0) failed = 1;
    if (type) PyErr_Restore(type, value, traceback);
    return -failed;
}

/* Notes what is current, which may be an inner scope's device. 0, or -1 with an exception. */
static int note_inside(Context *self) {
    const hamr_functions *functions;
    void *current;
    int32_t has;
    if (place_usable(&self->place, &functions) < 0) return -1;
    const hamr_devices *devices = place_driver(&self->place, functions);
    if (devices && devices->cuda_context(&current) == 0) {
        self->inside = (uint64_t)(uintptr_t)current;
        return 0;
    }
    hamr_error *error = functions->activate_if_current(self->place.backend, self->place.device, &self->inside, &has);
    return error ? core_raise(error) : 0;
}

/* Makes current what note_inside has noted. 0, or -1 with an exception. */
static int restore_inside(Context *self) {
    if (activate(self) < 0) return -1;
    if (!self->activated) return 0;
    const hamr_functions *functions = core_functions();
    void *current;
    if (set_directly(place_driver(&self->place, functions), (void *)(uintptr_t)self->inside, &current)) return 0;
    hamr_error *error = functions->restore(self->place.backend, self->inside);
    return error ? core_raise(error) : 0;
}

static int suspend(Context *root) {
    if (root->activated && (note_inside(root) < 0 || restore(root) < 0)) return -1;
    root->suspensions++;
    return 0;
}

static int resume(Context *root) { return root->suspensions && --root->suspensions == 0 ? restore_inside(root) : 0; }

enum { MOST_ROOTS = 16 };

/* Adds the outermost scopes of each runtime around one. */
static void add_roots(Context *innermost, Context **roots, int *count) {
    for (Context *scope = innermost; scope && *count < MOST_ROOTS; scope = enclosing_of(scope)) {
        int known = 0;
        for (int i = 0; i < *count; i++) known |= roots[i] == root_of(scope);
        if (!known) roots[(*count)++] = root_of(scope);
    }
}

/* A list of roots and their scopes' numbers, once they are suspended; NULL with an exception, and none is. */
static PyObject *suspend_all(Context **roots, int count) {
    PyObject *suspended = PyTuple_New(2 * count);
    for (int i = 0; suspended && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLong(roots[i]->scope);
        if (number && suspend(roots[i]) == 0) {
            PyTuple_SetItem(suspended, 2 * i, Py_NewRef((PyObject *)roots[i]));
            PyTuple_SetItem(suspended, 2 * i + 1, number);
            continue;
        }
        Py_XDECREF(number);
        Py_CLEAR(suspended);
        Raised raised = raised_take();
        while (i-- > 0)
            if (resume(roots[i]) < 0) PyErr_Clear();
        raised_restore(raised);
    }
    return suspended;
}

PyObject *scope_suspend(Context *self) {
    Context *inner = NULL, *roots[MOST_ROOTS];
    int count = 0;
    if (self->outer && !on_own_thread(self)) return NULL;
    PyObject *blocks = get_blocks();
    int failed = !blocks || innermost(blocks, &inner) < 0;
    Py_XDECREF(blocks);
    if (failed) return NULL;
    add_roots(inner, roots, &count);
    if (self->outer) add_roots(self, roots, &count);
    return suspend_all(roots, count);
}

int scope_resume(PyObject *suspended) {
    int failed = 0;
    for (Py_ssize_t i = PyTuple_Size(suspended) - 2; i >= 0; i -= 2) {
        Context *root = (Context *)PyTuple_GetItem(suspended, i);
        if (!root->outer || PyLong_AsUnsignedLong(PyTuple_GetItem(suspended, i + 1)) != root->scope) continue;
        failed |= !on_own_thread(root) || resume(root) < 0;
    }
    return -failed;
}

void scope_setup(void) {
    *(void **)&variable_get = dlsym(RTLD_DEFAULT, "PyContextVar_Get");
    *(void **)&variable_set = dlsym(RTLD_DEFAULT, "PyContextVar_Set");
    *(void **)&variable_reset = dlsym(RTLD_DEFAULT, "PyContextVar_Reset");
}
