#include "native.h"

PyMethodDef arrow_functions[] = {{NULL, NULL, 0, NULL}};
