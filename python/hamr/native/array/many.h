/* Many arrays' elements at once. */
#ifndef HAMR_ARRAY_MANY_H
#define HAMR_ARRAY_MANY_H

#include "base/python.h"

extern PyMethodDef many_functions[];

#endif
