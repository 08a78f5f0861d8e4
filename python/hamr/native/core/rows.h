/* Replies of several values. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"

PyObject *rows_take(hamr_error *error, hamr_rows *rows); /* a list of tuples, or the exception of error; frees both */
