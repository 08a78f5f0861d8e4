/* Many objects of the store at once. */
#pragma once

#include "base/python.h"

extern PyMethodDef several_functions[];
