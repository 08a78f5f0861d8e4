/* What keeps foreign memory alive. */
#pragma once

#include "base/python.h"

#include <stdint.h>

/* An object that keeps foreign memory alive. Its address is the key under which the Go core knows the memory. */
typedef struct Owner {
    PyObject *object;
    Py_buffer *view;    /* held so that the exporter cannot resize; may be NULL */
    void *memory;       /* what ends by finish, in place of an object; may be NULL */
    void (*finish)(void *memory); /* called with the GIL */
    struct Owner *next; /* in the list of finished owners */
} Owner;

Owner *owner_new(PyObject *object, Py_buffer *view); /* takes over view */
Owner *owner_of_memory(void *memory, void (*finish)(void *)); /* takes over memory */
void owner_drop(Owner *owner);
void owner_finished(uint64_t key);      /* any thread, without the GIL */
void owner_finished_here(Owner *owner); /* with the GIL: dropped now, or by the drop that this one is part of */
void owner_finished_soon(Owner *owner); /* any thread: as owner_finished_here where it has the GIL, else soon */
void owner_drain_soon(void); /* any thread: drops finished owners, here if it has the GIL, else soon */
void owner_drain(void);                 /* drops the owners that are finished */
void owners_forget(void);               /* after a fork: what other threads were about is the parent's */
int owner_setup(void);
extern PyMethodDef owner_functions[];
