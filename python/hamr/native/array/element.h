/* One element of an array, as a value. */
#ifndef HAMR_ARRAY_ELEMENT_H
#define HAMR_ARRAY_ELEMENT_H

#include "base/python.h"

extern PyMethodDef array_element_functions[];

#endif
