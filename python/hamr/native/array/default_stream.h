/* The default stream of an array's device, where C may ask the driver itself. */
#ifndef HAMR_ARRAY_DEFAULT_STREAM_H
#define HAMR_ARRAY_DEFAULT_STREAM_H

#include "array/array.h"

const hamr_devices *default_stream_driver(const Array *self); /* NULL where the core must be asked: it is another runtime's, or another context is current */
int default_stream_captured(const hamr_devices *devices); /* 1 while a stream is captured that the default one would wait for; -1: the driver does not say */
int default_stream_idle(const Array *self); /* whether it is known to have nothing to do */
int array_has_own_order(const Array *self); /* whether work is recorded, or on a stream of the array's own, that others must wait for */
int default_stream_download(const Array *self, void *target, int64_t size, hamr_error **error); /* copies elements, of so many bytes, to the host by the driver alone; 0: the core must do it, as where they are not in C order */

#endif
