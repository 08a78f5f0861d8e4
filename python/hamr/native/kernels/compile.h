/* Text of kernels, compiled by the vendor's compiler. */
#pragma once

#include "base/python.h"

extern PyMethodDef compile_functions[];
