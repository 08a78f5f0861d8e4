/* What a consumer asks __dlpack__ for. */
#pragma once

#include "base/python.h"
#include "plain/dlpack.h"

/* What the consumer's work is to run after the work pending on the elements: that on
 * the default stream, none, or that on the stream named. */
typedef enum { DEFAULT_ORDER, NO_ORDER, BEFORE_STREAM } Order;

typedef struct {
    Order order;
    uint64_t stream;         /* of BEFORE_STREAM */
    int versioned;           /* the consumer knows of versions */
    int placed;              /* a device was named */
    DLDevice device;         /* type 0: numbers that no device has */
    PyObject *device_object; /* as it was given; borrowed */
    int copy;                /* -1: only if needed */
} Request;

int dlpack_request_setup(void);
/* 0, or -1 with an exception. */
int dlpack_request_read(Request *request, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
