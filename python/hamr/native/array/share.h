/* Elements that other processes have in place, without a server. */
#pragma once

#include "base/python.h"

int share_setup(void); /* 0, or -1 with an exception */
extern PyMethodDef share_functions[];
