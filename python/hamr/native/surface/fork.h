/* What a forked child is to forget. */
#ifndef HAMR_SURFACE_FORK_H
#define HAMR_SURFACE_FORK_H

#include "base/python.h"

int fork_setup(void); /* 0, or -1 with an exception */
extern PyMethodDef fork_functions[];

#endif
