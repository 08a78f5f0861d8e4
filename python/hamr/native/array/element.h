/* One element of an array, as a value. */
#pragma once

#include "base/python.h"

extern PyMethodDef array_element_functions[];
