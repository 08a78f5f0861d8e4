/* What the core knows of the machine and of its own memory. */
#pragma once

#include "base/python.h"

extern PyMethodDef machine_functions[];
