/* Objects of the store that are made, and that are found. */
#pragma once

#include "base/python.h"

#include "array/array.h"
#include "plain/layout.h"
#include "store/call.h"
#include "store/owned.h"

/* What is asked for: where elements go, and what the call has said of them. */
typedef struct {
    StoreCall call;
    Draft draft;
    Owned *lease;
    PyObject *type, *object, *session;
    uint64_t token;
    int32_t sealed;
} Leasing;

/* An array of the elements of a draft, which keeps the lease, as that keeps the session. */
PyObject *object_lent(Leasing *leasing, Draft *draft);

/* What others have enqueued may write to host memory. A stream that is another one on each thread is not named on
 * that of the call. 0, or -1 with an exception. */
int object_settle(Array *source);

int object_setup(void); /* 0, or -1 with an exception */
extern PyMethodDef object_functions[];
