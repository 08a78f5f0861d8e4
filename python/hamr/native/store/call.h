/* One call of the store's functions, on which signals are handled. */
#pragma once

#include "base/python.h"
#include "core/core.h"
#include "core/patience.h"
#include "hamr/store_functions.h"

/* A call, and the arguments that most have, by the letters of store_call_read. */
typedef struct {
    const hamr_store_functions *functions;
    hamr_error *error; /* after the call; or NULL */
    uint64_t generation;
    uint32_t how;
    int on;               /* o: true or false */
    int64_t number;       /* n */
    uint64_t token;       /* t: a number of the core's, or an Owned that has one */
    hamr_store_id id;     /* i */
    hamr_store_text text; /* s */
} StoreCall;

int store_call_begin(StoreCall *call); /* 0, or -1 with an exception */
int store_call_read(StoreCall *call, PyObject *const *arguments, Py_ssize_t n, const char *letters); /* and begins it */

/* Calls one of the functions, whose first argument is call.how, and waits for its outcome. */
#define STORE_CALL(call, name, ...)                                     \
    do {                                                                \
        Py_BEGIN_ALLOW_THREADS                                          \
        (call).error = (call).functions->name((call).how, __VA_ARGS__); \
        Py_END_ALLOW_THREADS                                            \
        (call).error = patience_outcome((call).error);                  \
    } while (0)

/* Whether what a call that failed has set is the caller's to end: it succeeded as it was stopped. */
static inline int store_call_made(const StoreCall *call) { return call->error && call->generation == core_generation; }

PyObject *store_call_raise(StoreCall *call, void *block); /* frees block, if the call has set one; NULL */
PyObject *store_text_new(hamr_store_text text);

/* After static: a function of the module, whose arguments the letters name. */
#define STORE_FUNCTION(name, letters)                                                           \
    PyObject *name##_called(StoreCall *call);                                                   \
    static PyObject *name(PyObject *module, PyObject *const *arguments, Py_ssize_t n) {         \
        StoreCall call;                                                                         \
        (void)module;                                                                           \
        return store_call_read(&call, arguments, n, letters) < 0 ? NULL : name##_called(&call); \
    }                                                                                           \
    static PyObject *name##_called(StoreCall *call)

/* One whose call sets nothing. */
#define SETTER(name, entry, letters, ...)                                      \
    static STORE_FUNCTION(name, letters) {                                     \
        STORE_CALL(*call, entry, __VA_ARGS__);                                 \
        return call->error ? store_call_raise(call, NULL) : Py_NewRef(Py_None); \
    }
