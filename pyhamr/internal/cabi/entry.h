/* What a thread does before each call into Go. Each package that exports Go functions to C includes this in
 * their preamble: cgo's own code calls the function below first. */
#ifndef HAMR_CABI_ENTRY_H
#define HAMR_CABI_ENTRY_H

#include <stddef.h>

/* Weak, since cgo links each package alone to see what it needs. */
__attribute__((weak, visibility("hidden"))) size_t hamr_enter(void);

#define _cgo_wait_runtime_init_done hamr_enter

#endif
