#pragma once

#include "base/python.h"

extern PyMethodDef timer_functions[];
