/* Objects of the store that are made, and that are found. */
#pragma once

#include "base/python.h"

int object_setup(void); /* 0, or -1 with an exception */
extern PyMethodDef object_functions[];
