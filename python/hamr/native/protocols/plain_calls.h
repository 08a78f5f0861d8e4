/* What is called most, with plain arguments. */
#ifndef HAMR_PROTOCOLS_PLAIN_CALLS_H
#define HAMR_PROTOCOLS_PLAIN_CALLS_H

#include "base/python.h"

extern PyMethodDef plain_call_functions[];

#endif
