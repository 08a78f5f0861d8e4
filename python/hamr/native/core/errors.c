#include "core/errors.h"

#include <stdlib.h>

#include "base/containers.h"
#include "base/python.h"
#include "core/texts.h"
#include "hamr/store_functions.h"

/* By hamr_error_kind - 1, and of the store by kind - HAMR_ERROR_NOT_FOUND; NULL until Python has told them. */
static PyObject *exceptions, *of_store;

static int take_classes(PyObject *classes, int count, PyObject **into) {
    int fit = PyTuple_Check(classes) && PyTuple_Size(classes) == count;
    for (Py_ssize_t i = 0; fit && i < count; i++) fit = PyExceptionClass_Check(PyTuple_GetItem(classes, i));
    if (!fit) return RAISE(PyExc_TypeError, "the exceptions are %R: expected a tuple of %d classes", classes, count);
    replace_reference(into, Py_NewRef(classes));
    return 0;
}

int core_raise_as(PyObject *classes) { return take_classes(classes, HAMR_ERROR_KIND_COUNT - 1, &exceptions); }

int core_raise_of_store_as(PyObject *classes) {
    return take_classes(classes, HAMR_STORE_KINDS_END - HAMR_ERROR_NOT_FOUND, &of_store);
}

static PyObject *class_of(int32_t kind) {
    if (of_store && kind >= HAMR_ERROR_NOT_FOUND && kind < HAMR_STORE_KINDS_END)
        return PyTuple_GetItem(of_store, kind - HAMR_ERROR_NOT_FOUND);
    return exceptions && kind > 0 && kind < HAMR_ERROR_KIND_COUNT ? PyTuple_GetItem(exceptions, kind - 1)
        : PyExc_RuntimeError;
}

/* Takes over value. */
static int give(PyObject *exception, const char *name, PyObject *value) {
    int given = value ? PyObject_SetAttrString(exception, name, value) : -1;
    Py_XDECREF(value);
    return given;
}

static PyObject *holders_of(const hamr_error *error) {
    PyObject *all = PyTuple_New((Py_ssize_t)error->count);
    for (Py_ssize_t i = 0; all && i < error->count; i++) {
        const hamr_holder *holder = &error->holders[i];
        tuple_put(&all, i, Py_BuildValue("(LL)", (long long)holder->process, (long long)holder->bytes));
    }
    return all;
}

static int give_of_full_store(PyObject *exception, const hamr_error *error) {
    if (give(exception, "memory", core_text(error->source ? error->source : "")) < 0) return -1;
    if (give(exception, "size", PyLong_FromLongLong(error->size)) < 0) return -1;
    if (give(exception, "limit", PyLong_FromLongLong(error->limit)) < 0) return -1;
    if (give(exception, "used", PyLong_FromLongLong(error->used)) < 0) return -1;
    return give(exception, "holders", holders_of(error));
}

static int give_attributes(PyObject *exception, const hamr_error *error) {
    const char *source = error->source ? error->source : "", *name = error->name ? error->name : "";
    switch (error->kind) {
    case HAMR_OUT_OF_MEMORY:
        return give(exception, "size", PyLong_FromLongLong(error->size));
    case HAMR_UNAVAILABLE:
        return give(exception, "backend", core_text(source)) < 0 ? -1
            : give(exception, "tried", core_texts(error->tried));
    case HAMR_DEVICE_ERROR:
        if (give(exception, "api", core_text(source)) < 0 || give(exception, "name", core_text(name)) < 0) return -1;
        return give(exception, "code", PyLong_FromLong(error->code));
    case HAMR_PAUSED:
        return give(exception, "tag", core_text(name));
    case HAMR_INTERNAL_ERROR:
        return give(exception, "stack", core_text(error->stack ? error->stack : ""));
    case HAMR_ERROR_NAME_TAKEN:
        return give(exception, "id", core_text(name));
    case HAMR_ERROR_FULL:
        return give_of_full_store(exception, error);
    case HAMR_ERROR_LOST:
        return give(exception, "path", core_text(name));
    case HAMR_STORE_DESCRIPTORS:
        return give(exception, "errno", PyLong_FromLong(error->code));
    default:
        return 0;
    }
}

static void raise_error(const hamr_error *error) {
    PyObject *class = class_of(error->kind), *message = core_text(error->message ? error->message : "");
    PyObject *exception = message ? PyObject_CallFunctionObjArgs(class, message, NULL) : NULL;
    if (exception && (class == PyExc_RuntimeError || give_attributes(exception, error) == 0))
        PyErr_SetObject(class, exception);
    Py_XDECREF(message);
    Py_XDECREF(exception);
}

/* An exception that was raised already. */
typedef struct {
    hamr_error error;
    Raised raised;
} Interruption;

void core_report(hamr_error *error, PyObject *where) {
    if (!error) return;
    Raised raised = raised_take();
    core_raise(error);
    PyErr_WriteUnraisable(where);
    raised_restore(raised);
}

hamr_error *core_interruption(void) {
    Interruption *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->error = (hamr_error){.kind = HAMR_INTERRUPTED, .message = "interrupted"};
    made->raised = raised_take();
    return &made->error;
}

PyObject *core_failed(hamr_error *error) {
    if (error) core_raise(error);
    return NULL;
}

int core_raise(hamr_error *error) {
    if (error->kind == HAMR_INTERRUPTED) {
        Interruption *made = (Interruption *)error;
        raised_restore(made->raised);
        free(made);
        return -1;
    }
    raise_error(error);
    free(error);
    return -1;
}

PyObject *core_freed(const char *message) {
    raise_error(&(hamr_error){.kind = HAMR_FREED, .message = message});
    return NULL;
}

static int raise_forked(const char *message) {
    raise_error(&(hamr_error){.kind = HAMR_FORKED, .message = message});
    return -1;
}

int core_forked_within(void) { return raise_forked("this call is of the parent process"); }

int core_forked_before_writing(void) {
    return raise_forked("a device had yet to write to this buffer at the fork(): wait for it before, by synchronize()");
}

int core_forked(void) {
    return raise_forked("this device buffer was made before fork(): the driver does not work in a forked child; start "
                        "processes with "
                        "multiprocessing's spawn or forkserver method, or copy the buffer to the host before the fork");
}
