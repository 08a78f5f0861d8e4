/* Servers and sessions of the store: names, what is known of objects, figures, events. */
#ifndef HAMR_STORE_SESSION_H
#define HAMR_STORE_SESSION_H

#include "base/python.h"

extern PyMethodDef session_functions[];

#endif
