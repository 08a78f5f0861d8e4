/* Objects of the store that are made, and that are found. */
#ifndef HAMR_STORE_OBJECT_H
#define HAMR_STORE_OBJECT_H

#include "base/python.h"

int object_setup(void); /* 0, or -1 with an exception */
extern PyMethodDef object_functions[];

#endif
