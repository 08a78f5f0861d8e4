/* Elements that are somebody's for reading or writing, until he ends that. */
#ifndef HAMR_ARRAY_LEND_H
#define HAMR_ARRAY_LEND_H

#include "base/python.h"

extern PyMethodDef lend_functions[];

#endif
