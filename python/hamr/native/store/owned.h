/* Things of the core's store that end with an object of Python's. */
#pragma once

#include "base/python.h"
#include "hamr/store_functions.h"

typedef enum { OWNS_NOTHING, OWNS_SERVER, OWNS_SESSION, OWNS_OBJECT, OWNS_EVENTS, OWNS_UNTAKEN } OwnedKind;

typedef struct {
    PyObject_HEAD
    OwnedKind kind;
    char sealed;         /* of a lease: its object is */
    uint64_t number, generation;
    hamr_store_id id;    /* of a lease, and of an object that nobody has taken yet */
    uint64_t address, nbytes; /* where a lease's memory lies; no bytes: nowhere */
    PyObject *path;      /* a server's and a session's, and of a lease the session's; or NULL */
    PyObject *keeps;     /* what must not go before it ends, or NULL */
} Owned;

PyObject *id_new(const hamr_store_id *id); /* hamr.store.ObjectID, of 32 digits */
int id_read(PyObject *digits, hamr_store_id *id); /* 0, or -1 with an exception */
int owned_setup(PyObject *module); /* 0, or -1 with an exception */
Owned *owned_of(PyObject *object); /* one that owns nothing yet; else NULL with an exception */
Owned *owned_lease(PyObject *object); /* one that is or was of an object; else NULL with an exception */
Owned *owned_new(void);            /* of the base class */
void owned_begin(Owned *self, OwnedKind kind, uint64_t number, PyObject *keeps); /* keeps may be NULL */
int owned_lies_at(Owned *self, uint64_t address, uint64_t nbytes); /* for owned_at, once; 0, or -1 with an exception */
int owned_read(PyObject *object, uint64_t *number); /* a number, or what has one; 0, or -1 with an exception */
extern PyMethodDef owned_functions[];
