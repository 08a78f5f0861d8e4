/// A header of LBL's HAMR by its name: hamr.hpp has what is in it.
#ifdef SWIG
%include "hamr_buffer.i"
#endif
#include "hamr_config.h"
