#include "store/call.h"

#include <string.h>

#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "core/patience.h"
#include "store/owned.h"

int store_call_begin(StoreCall *call) {
    if (core_load() < 0) return -1;
    call->functions = core_functions()->store;
    call->generation = core_generation;
    call->how = patience_flags();
    call->error = NULL;
    return 0;
}

static int read_text(PyObject *text, hamr_store_text *into) {
    Py_ssize_t bytes;
    into->text = PyUnicode_AsUTF8AndSize(text, &bytes);
    into->bytes = bytes;
    return into->text ? 0 : -1;
}

static int read_one(StoreCall *call, PyObject *given, char letter) {
    switch (letter) {
    case 't': return owned_read(given, &call->token);
    case 'i': return id_read(given, &call->id);
    case 's': return read_text(given, &call->text);
    case 'o': return call->on = PyObject_IsTrue(given);
    default: call->number = PyLong_AsLongLong(given); return call->number == -1 && PyErr_Occurred() ? -1 : 0;
    }
}

int store_call_read(StoreCall *call, PyObject *const *arguments, Py_ssize_t n, const char *letters) {
    if (arity(n, (Py_ssize_t)strlen(letters), "this function of the store's") < 0) return -1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (read_one(call, arguments[i], letters[i]) < 0) return -1;
    return store_call_begin(call);
}

PyObject *store_call_raise(StoreCall *call, void *block) {
    if (block && store_call_made(call)) core_functions()->free(block);
    core_raise(call->error);
    return NULL;
}

PyObject *store_text_new(hamr_store_text text) {
    return PyUnicode_DecodeUTF8(text.text, (Py_ssize_t)text.bytes, "replace");
}
