/// A header of LBL's HAMR by its name: hamr/cpp/interpreter.hpp has what is in it.
#include "hamr_config.h"
#ifdef HAMR_ENABLE_PYTHON
#include "hamr/cpp/interpreter.hpp"
#endif
