/* What the core knows of the machine and of its own memory. */
#ifndef HAMR_CORE_MACHINE_H
#define HAMR_CORE_MACHINE_H

#include "base/python.h"

extern PyMethodDef machine_functions[];

#endif
