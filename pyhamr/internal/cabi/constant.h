/* cgo writes the C of an exported function from Go's types, which have no const. */
#ifndef HAMR_CONSTANT_H
#define HAMR_CONSTANT_H

#include <stdint.h>

#include "hamr/store_functions.h"

typedef const char constant_char;
typedef const void constant_void;
typedef const int32_t constant_int32;
typedef const int64_t constant_int64;
typedef const hamr_interface constant_interface;
typedef hamr_array *const constant_array;
typedef const hamr_store_id constant_id;
typedef const hamr_store_options constant_options;
typedef const hamr_store_text constant_text;

#endif
