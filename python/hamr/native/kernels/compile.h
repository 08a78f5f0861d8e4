/* Text of kernels, compiled by the vendor's compiler. */
#ifndef HAMR_KERNELS_COMPILE_H
#define HAMR_KERNELS_COMPILE_H

#include "base/python.h"

extern PyMethodDef compile_functions[];

#endif
