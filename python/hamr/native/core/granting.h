/* Functions of Python's that hand out memory by a hook of a library's. */
#ifndef HAMR_NATIVE_CORE_GRANTING_H
#define HAMR_NATIVE_CORE_GRANTING_H

#include "base/python.h"

extern PyMethodDef granting_methods[];

#endif
