#ifndef HAMR_BASE_TIMER_H
#define HAMR_BASE_TIMER_H

#include "base/python.h"

extern PyMethodDef timer_functions[];

#endif
