/// A header of LBL's HAMR by its name: hamr.hpp has what is in it.
#include "hamr_config.h"
