/* The core's texts as Python's. What is not UTF-8, as in the name of a file, is replaced. */
#pragma once

#include "base/python.h"

PyObject *core_text(const char *text);          /* a str; None for NULL */
PyObject *core_texts(const char *const *texts); /* a tuple; NULL ends them */
const char *text_for_core(PyObject *value);     /* a str's, as long as that lives; NULL with an exception */
