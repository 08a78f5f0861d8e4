/* What work on a device makes, and the point in its stream's order where it is made. */
#pragma once

#include "base/python.h"
#include "scheduling/placed.h"

/* The stream of a context, which one context takes over that is made of a product of it: the first. */
typedef struct {
    unsigned references; /* the context's, and its products' */
    char taken;
} Succession;

void succession_release(Succession *succession); /* NULL is harmless */

/* After all that the stream has; NULL with an exception. *succession is made if it is NULL. */
PyObject *product_new(const StreamPlace *place, PyObject *content, Succession **succession);
int is_product(PyObject *object);
PyObject *product_content(PyObject *product);                 /* a new reference */
/* later work there waits for it; 0, or -1 with an exception */
int product_wait(PyObject *product, const StreamPlace *place);
/* whether the caller is the first consumer, which gets the stream */
int product_take(PyObject *product, StreamPlace *place);

int product_setup(PyObject *module); /* 0, or -1 with an exception */
