/// A header of LBL's HAMR by its name: hamr.hpp has what is in it.
#ifndef HAMR_STREAM_H
#define HAMR_STREAM_H

#include "hamr_config.h"

#endif
