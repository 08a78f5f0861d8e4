/* Other libraries' Arrow arrays. */
#pragma once

#include "base/python.h"

extern PyMethodDef arrow_functions[];
