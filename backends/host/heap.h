#ifndef HAMR_BACKENDS_HOST_HEAP_H
#define HAMR_BACKENDS_HOST_HEAP_H

#include <stddef.h>
#include <stdint.h>

// Memory of 64-byte alignment that plain free() gives back; 0 when out of it.
uintptr_t hamr_heap_allocate(size_t size, int zero);
void hamr_heap_free(uintptr_t at);
size_t hamr_heap_usable(uintptr_t at);
uintptr_t hamr_heap_free_function(void);

// The same through C++'s operators, given by address: aligned ones of C++17, or plain ones, which align to 16 bytes.
uintptr_t hamr_operator_allocate(uintptr_t operator_new, int aligned, size_t size, int zero);
void hamr_operator_free(uintptr_t operator_delete, int aligned, uintptr_t at);

// Finds operator new[](size_t, nothrow), operator delete[](void *) and the two that take an
// alignment in a library, or in the process's global scope where library is NULL. Returns 1
// when the first two are there; otherwise 0 and the loader's words in message.
int hamr_find_operators(const char *library, uintptr_t found[4], char *message, size_t room);

#endif
