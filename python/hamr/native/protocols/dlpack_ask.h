/* Asking an object for a tensor. */
#ifndef HAMR_PROTOCOLS_DLPACK_ASK_H
#define HAMR_PROTOCOLS_DLPACK_ASK_H

#include "base/python.h"

int dlpack_ask_setup(void);
extern PyMethodDef dlpack_functions[];

#endif
