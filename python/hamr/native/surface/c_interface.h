/* What hamr/python.h offers to extensions and to programs that embed Python. */
#pragma once

#include "base/python.h"

int c_interface_setup(PyObject *module); /* 0, or -1 with an exception */
