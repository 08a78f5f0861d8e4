#ifndef HAMR_BACKENDS_HOST_SHARED_H
#define HAMR_BACKENDS_HOST_SHARED_H

#include <stddef.h>
#include <stdint.h>

// Returns new memory of zeros, which forked children share, and which other processes can
// open by its descriptor. 0 with errno set: ENOMEM, EMFILE, ENOSYS, ...
uintptr_t hamr_shared_allocate(size_t size);

// Where a process has memory open.
typedef struct {
  int process, descriptor;
} hamr_shared_place;

// Maps the memory of a descriptor of this process once more, and takes the descriptor over.
// The creator has the memory open, too. After 0, with errno set, the descriptor is still the
// caller's.
uintptr_t hamr_shared_map(int descriptor, size_t size, hamr_shared_place maker);

// Ends a mapping of this process, and closes its descriptor. It is safe in a forked child,
// where it ends the child's mapping.
void hamr_shared_free(void *at);
uintptr_t hamr_shared_free_function(void);

// Returns what the memory at an address, returned by a function above, was mapped from. 0 if
// the page in front of it was not written here.
int hamr_shared_origin(uintptr_t at, int *descriptor, size_t *size, hamr_shared_place *maker);

#endif
