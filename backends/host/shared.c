#ifndef _GNU_SOURCE
#define _GNU_SOURCE // F_ADD_SEALS
#endif
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

// It is in a private page in front of the memory. There a forked child finds it, whose copy
// of the program knows nothing about the parent's allocations.
typedef struct {
  uint64_t mark;
  size_t mapped; // bytes, this page included
  size_t size;   // as asked for
  int descriptor;
  hamr_shared_place maker;
} front;

static const uint64_t mark = 0x64657261687372a8;

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static front *front_of(uintptr_t at) { return (front *)(at - page_size()); }

uintptr_t hamr_shared_map(int descriptor, size_t size, hamr_shared_place maker) {
  const size_t page = page_size();
  if (size > SIZE_MAX / 4) {
    errno = ENOMEM;
    return 0;
  }
  const size_t mapped = page + ((size + page - 1) & ~(page - 1));
  char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    return 0;
  if (mmap(start + page, mapped - page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
    const int why = errno;
    munmap(start, mapped);
    errno = why;
    return 0;
  }
  *(front *)start = (front){mark, mapped, size, descriptor, maker};
  return (uintptr_t)start + page;
}

// The kernel reserves no pages for such files. To touch a page that it cannot provide ends
// the process by a signal. So a size that cannot fit at all is refused at once, as for other
// memory.
static int exceeds_machine(size_t size) {
  struct sysinfo machine;
  return sysinfo(&machine) == 0 && size / machine.mem_unit > machine.totalram + machine.totalswap;
}

uintptr_t hamr_shared_allocate(size_t size) {
  if (exceeds_machine(size)) {
    errno = ENOMEM;
    return 0;
  }
  // By its number, since the C library has the function only from 2.27 on.
  const unsigned close_on_exec = 1, allow_sealing = 2;
  const int descriptor = (int)syscall(SYS_memfd_create, "hamr-shared", close_on_exec | allow_sealing);
  if (descriptor < 0)
    return 0;
  uintptr_t at = 0;
  // To cut a file that others have mapped would end them by SIGBUS.
  // Whole pages, since others cannot map less.
  const size_t page = page_size();
  if (ftruncate(descriptor, (off_t)((size + page - 1) & ~(page - 1))) == 0 &&
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    at = hamr_shared_map(descriptor, size, (hamr_shared_place){getpid(), descriptor});
  if (at == 0) {
    const int why = errno;
    close(descriptor);
    errno = why == EFBIG || why == EINVAL ? ENOMEM : why; // too large for any file
  }
  return at;
}

void hamr_shared_free(void *at) {
  front *f = front_of((uintptr_t)at);
  const int descriptor = f->descriptor;
  munmap(f, f->mapped);
  close(descriptor);
}

uintptr_t hamr_shared_free_function(void) { return (uintptr_t)hamr_shared_free; }

int hamr_shared_origin(uintptr_t at, int *descriptor, size_t *size, hamr_shared_place *maker) {
  const front *f = front_of(at);
  if (f->mark != mark)
    return 0;
  *descriptor = f->descriptor;
  *size = f->size;
  *maker = f->maker;
  return 1;
}
