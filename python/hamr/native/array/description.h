/* What an array says of itself by __cuda_array_interface__. */
#ifndef HAMR_ARRAY_DESCRIPTION_H
#define HAMR_ARRAY_DESCRIPTION_H

#include "array/array.h"

int description_setup(void);
int description_offered(const Array *self);
int description_prepare(Array *self); /* makes self->interface, if it can be */

#endif
