/* What an array says of itself by __cuda_array_interface__. */
#pragma once

#include "array/array.h"

int description_setup(void);
int description_offered(const Array *self);
int description_prepare(Array *self); /* makes self->interface, if it can be */
