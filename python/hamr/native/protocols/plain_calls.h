/* What is called most, with plain arguments. */
#pragma once

#include "base/python.h"

extern PyMethodDef plain_call_functions[];
