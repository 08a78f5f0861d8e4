/* C without Python, from which Python's extension is compiled, too. */
#include "plain/allocators.c"
#include "plain/layout.c"
#include "plain/memory.c"
#include "plain/tensor.c"
