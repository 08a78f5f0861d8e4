/// A header of LBL's HAMR by its name: hamr.hpp has what is in it.
#ifndef HAMR_BUFFER_H
#define HAMR_BUFFER_H

#include "hamr_config.h"

#endif
