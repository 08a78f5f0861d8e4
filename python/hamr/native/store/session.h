/* Servers and sessions of the store: names, what is known of objects, figures, events. */
#pragma once

#include "base/python.h"

extern PyMethodDef session_functions[];
