/* The rules of the array interface. */
#pragma once

#include "base/python.h"

extern PyMethodDef array_interface_functions[];
