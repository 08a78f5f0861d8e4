/* An array in a Block: the base of hamr.Buffer (which changes) and hamr.Handle (which never does). */
#pragma once

#include "array/turn.h"
#include "base/python.h"
#include "hamr/functions.h"
#include "memory/block.h"

#define INLINE_DIMENSIONS 4

typedef struct {
    PyObject_HEAD
    Turn *turn;                                /* whose it is to change the object, or NULL: nobody's yet */
    hamr_array array;
    Block *block;                              /* NULL: no memory */
    union {
        int64_t dimensions[2 * INLINE_DIMENSIONS]; /* array.shape and .strides, if they fit */
        unsigned char scalar[16];                  /* the element of a scalar(), which has neither */
    };
    int64_t *allocated_dimensions;             /* shape and strides, if they do not */
    PyObject *order;                           /* the object that array.stream was given as, or NULL */
    PyObject *life;                            /* keeps array.stream alive, whatever order lets go, or NULL */
    PyObject *kept;                            /* a Block whose address was given away, or a set of them, or NULL */
    PyObject *source;                          /* the protocol that the memory came by, or NULL */
    PyObject *interface;                       /* a ready __cuda_array_interface__, nobody else's, or NULL */
    uint32_t changes;                          /* how often interface became wrong */
    char fixed;                                /* never changes: exports itself */
    char temporary;
    char own_copy; /* read-only, since nobody would see a write to it; nobody else has the elements */
    char cached;                               /* the core keeps its temporaries */
    char for_space;                            /* FOR_SPACE() of a handle's consumer, or 0 */
    char closed;
    Py_ssize_t exports;                        /* views of a fixed array, which keep its memory */
} Array;

#define FOR_SPACE(space) ((char)((space) + 1))

#define OPEN(self) \
    if (((Array *)self)->closed) return array_freed((Array *)(self))

extern PyTypeObject *array_type; /* NULL until type.c has made it */
int is_array(PyObject *object);   /* or 0, with an exception */
int is_array_type(PyObject *type); /* the same */
Array *array_new(PyTypeObject *type);
int array_store(Array *self, const hamr_array *from, Block *block); /* takes over block */
/* Makes a new array. It takes over block, and follows source unless that is NULL. */
Array *array_make(PyTypeObject *type, const hamr_array *from, Block *block, const Array *source);
PyObject *array_freed(const Array *self); /* raises FreedBuffer; NULL */
/* Makes snapshot what array_pin would return, without a new object. 1: block_register comes first; -1: an error. */
int array_hold(Array *snapshot, const Array *self);
void array_follow(Array *self, const Array *source); /* takes part in keeping source's stream alive */
/* Keeps memory that self had until self ends, whatever self becomes. The caller holds lent. */
int array_keep(Array *self, Block *lent);
hamr_error *array_changed(const Array *self); /* the core keeps no temporaries of the elements any longer */
PyObject *array_dimensions(const int64_t *values, int n); /* a tuple */
/* Makes tuples, or None for strides in C order. 0, or -1 with an exception. */
int array_layout(const hamr_array *array, PyObject **shape, PyObject **strides);

/* Slots of the type. */
void array_dealloc(PyObject *object);
int array_traverse(PyObject *object, visitproc visit, void *arg);
int array_clear(PyObject *object);
Py_ssize_t array_length(PyObject *object);
void array_releasebuffer(PyObject *object, Py_buffer *view);

/* Methods of the type, by the names that they have there. */
PyObject *array_method_close(PyObject *object, PyObject *unused);
PyObject *array_method_empty(PyObject *object, PyObject *unused);
PyObject *array_method_set_order(PyObject *object, PyObject *arguments);
PyObject *array_method_swap(PyObject *object, PyObject *other);
