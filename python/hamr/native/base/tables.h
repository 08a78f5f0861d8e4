/* What Python is told of allocators, spaces and element types. */
#pragma once

#include "base/python.h"

extern PyMethodDef table_functions[];
