/* The core's texts as Python's. What is not UTF-8, as in the name of a file, is replaced. */
#ifndef HAMR_CORE_TEXTS_H
#define HAMR_CORE_TEXTS_H

#include "base/python.h"

PyObject *core_text(const char *text);          /* a str; None for NULL */
PyObject *core_texts(const char *const *texts); /* a tuple; NULL ends them */

#endif
