/* Sharing an object in one call. */
#ifndef HAMR_PROTOCOLS_ADOPT_KNOWN_H
#define HAMR_PROTOCOLS_ADOPT_KNOWN_H

#include "base/python.h"

int adopt_known_setup(void);
extern PyMethodDef adopt_known_functions[];

#endif
