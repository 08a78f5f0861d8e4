/* What has a device, a stream there, and what keeps that stream. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"

typedef struct {
    PyObject *stream; /* a hamr.Stream */
    uint64_t handle;
    uint64_t generation;
    int32_t device;
    char backend[16];
    char own; /* hamr has made the stream: it is of the context that hamr works in */
} StreamPlace;

/* The first member of a Token, a Product and a ScopedContext. */
typedef struct {
    PyObject_HEAD
    StreamPlace place;
} Placed;

/* Each returns 0, or -1 with an exception. */
int place_of_stream(StreamPlace *place, PyObject *stream);
int place_usable(const StreamPlace *place, const hamr_functions **functions); /* ForkError in a child */

void place_share(StreamPlace *place, const StreamPlace *other);
/* CUDA's driver, if the device is CUDA's and in use; else NULL. */
const hamr_devices *place_driver(const StreamPlace *place, const hamr_functions *functions);
int place_same_device(const StreamPlace *one, const StreamPlace *other);

PyTypeObject *placed_type(void); /* the base of those types; borrowed */
int placed_traverse(PyObject *object, visitproc visit, void *arg);

int placed_setup(PyObject *module); /* 0, or -1 with an exception */
