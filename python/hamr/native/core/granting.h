/* Functions of Python's that hand out memory by a hook of a library's. */
#pragma once

#include "base/python.h"

extern PyMethodDef granting_methods[];
