/* What a forked child is to forget. */
#pragma once

#include "base/python.h"

int fork_setup(void); /* 0, or -1 with an exception */
extern PyMethodDef fork_functions[];
