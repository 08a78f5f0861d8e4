/* The default stream of an array's device, where C may ask the driver itself. */
#pragma once

#include "array/array.h"

/* NULL where the core must be asked: the memory is another runtime's, or another context is current. */
const hamr_devices *default_stream_driver(const Array *self);
/* 1 while a stream is captured that the default one would wait for. -1: the driver cannot say. */
int default_stream_captured(const hamr_devices *devices);
int default_stream_idle(const Array *self); /* whether it is known to have nothing to do */
/* Whether the core must be asked before anybody uses a device's memory, since it may be paused. */
int array_may_be_paused(const Array *self);
/* Whether others must wait for work that is recorded, or on the array's own stream. */
int array_has_own_order(const Array *self);
/* Copies size bytes of elements to the host by the driver alone. 0: the core must do it. */
int default_stream_download(const Array *self, void *target, int64_t size, hamr_error **error);
