/// A header of LBL's HAMR by its name: hamr.hpp has what is in it.
#ifndef HAMR_CUDA_DEVICE_H
#define HAMR_CUDA_DEVICE_H

#include "hamr_config.h"

#endif
