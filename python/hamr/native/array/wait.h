/* Waiting for work on an array. */
#ifndef HAMR_ARRAY_WAIT_H
#define HAMR_ARRAY_WAIT_H

#include "array/array.h"
#include "base/python.h"

int array_wait_pinned(Array *source); /* array_wait of what array_pin returned */
int array_wait(Array *self); /* until all work on the elements is over; 0, or -1 with an exception: what went wrong on the device, or a signal's */
extern PyMethodDef wait_functions[];

#endif
