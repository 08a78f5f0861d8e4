/* What table.c, which is generated, has and needs. */
#pragma once

#include "hamr/store_functions.h"

#define HAMR_HIDDEN __attribute__((visibility("hidden")))

extern HAMR_HIDDEN hamr_functions hamr_own_functions;
extern HAMR_HIDDEN hamr_devices hamr_known_devices;
HAMR_HIDDEN void hamr_set_raise(hamr_raise_function raise);
