/* Elements that are somebody's for reading or writing, until he ends that. */
#pragma once

#include "base/python.h"

extern PyMethodDef lend_functions[];
