/* Exceptions of torch's. */
#pragma once

#include <sys/types.h>

/* Throws a c10::OutOfMemoryError, as far as this process's torch lets it, else a c10::Error. It returns
 * where there is no torch. */
void throw_out_of_memory(ssize_t size, int device, const char *why);
