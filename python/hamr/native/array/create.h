/* New arrays from what Python says of them. */
#ifndef HAMR_ARRAY_CREATE_H
#define HAMR_ARRAY_CREATE_H

#include "base/python.h"

extern PyMethodDef create_functions[];

#endif
