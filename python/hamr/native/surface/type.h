/* The type that Buffer and Handle are made from. */
#ifndef HAMR_SURFACE_TYPE_H
#define HAMR_SURFACE_TYPE_H

#include "base/python.h"

int type_setup(PyObject *module);

#endif
