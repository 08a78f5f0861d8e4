/* What Python is told of allocators, spaces and element types. */
#ifndef HAMR_BASE_TABLES_H
#define HAMR_BASE_TABLES_H

#include "base/python.h"

extern PyMethodDef table_functions[];

#endif
