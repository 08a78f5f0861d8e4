/* The type that Buffer and Handle are made from. */
#pragma once

#include "base/python.h"

int type_setup(PyObject *module);
