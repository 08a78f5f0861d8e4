/* The rules of the array interface. */
#ifndef HAMR_PROTOCOLS_ARRAY_INTERFACE_H
#define HAMR_PROTOCOLS_ARRAY_INTERFACE_H

#include "base/python.h"

extern PyMethodDef array_interface_functions[];

#endif
