#ifndef HAMR_BACKENDS_HOST_SHARED_H
#define HAMR_BACKENDS_HOST_SHARED_H

#include <stddef.h>
#include <stdint.h>

// New memory of zeros that forked children share, and that other processes can open by its
// descriptor. 0 with errno set: ENOMEM, EMFILE, ENOSYS, ...
uintptr_t hamr_shared_allocate(size_t size);

// Where a process has memory open.
typedef struct {
  int process, descriptor;
} hamr_shared_place;

// Another mapping of the memory that a descriptor of this process stands for, which it
// takes over; the maker has it open, too. 0 with errno set; the descriptor is the caller's
// then.
uintptr_t hamr_shared_map(int descriptor, size_t size, hamr_shared_place maker);

// Ends a mapping of this process, and closes its descriptor. Safe in a forked child, where
// it ends the child's.
void hamr_shared_free(void *at);
uintptr_t hamr_shared_free_function(void);

// What the memory at an address, of one of the above, was mapped from. 0 if what stands in
// front of it was not written here.
int hamr_shared_origin(uintptr_t at, int *descriptor, size_t *size, hamr_shared_place *maker);

#endif
