/* Waiting for work on an array. */
#pragma once

#include "array/array.h"
#include "base/python.h"

int array_wait_pinned(Array *source); /* array_wait of what array_pin returned */
/* Waits for all work on the elements. 0, or -1 with an exception: the device's error, or a signal's. */
int array_wait(Array *self);
extern PyMethodDef wait_functions[];
