/* Many arrays' elements at once. */
#pragma once

#include "base/python.h"

extern PyMethodDef many_functions[];
