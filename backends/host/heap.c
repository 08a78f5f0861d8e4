#ifndef _GNU_SOURCE
#define _GNU_SOURCE // RTLD_DEFAULT, MADV_HUGEPAGE
#endif
#include "heap.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { alignment = 64 };

// glibc keeps freed blocks of up to this size (DEFAULT_MMAP_THRESHOLD_MAX) for
// reuse and maps fresh pages for larger ones.
static const size_t largest_kept = (size_t)32 << 20;

// glibc's thread cache serves malloc up to about this size, posix_memalign never.
static const size_t largest_cached = 1024;

// Prepares a block that most likely is fresh pages. The kernel is told to drop
// the whole pages, which costs nothing where they are fresh and makes them read
// as zeros where the heap had used them before, and to back the block with huge
// pages, which cuts the cost of its first touch. A mark at both ends notices a
// heap whose mapping does not work like that (shared, locked, file-backed), or a
// kernel that refuses.
static void prepare_large(char *block, size_t size, int zero) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  char *first = (char *)(((uintptr_t)block + page - 1) & ~(page - 1));
  char *end = (char *)(((uintptr_t)block + size) & ~(page - 1));
  if (zero) {
    volatile char *head = first, *tail = end - page;
    *head = 1;
    *tail = 1;
    if (madvise(first, end - first, MADV_DONTNEED) == 0 && *head == 0 && *tail == 0) {
      memset(block, 0, first - block);
      memset(end, 0, block + size - end);
    } else {
      memset(block, 0, size);
    }
  }
#ifdef MADV_HUGEPAGE
  madvise(first, end - first, MADV_HUGEPAGE);
#endif
}

static void prepare(void *block, size_t size, int zero) {
  if (size > largest_kept)
    prepare_large(block, size, zero);
  else if (zero)
    memset(block, 0, size);
}

uintptr_t hamr_heap_allocate(size_t size, int zero) {
  void *block = NULL;
  if (size <= largest_cached) {
    // A block of ours that came back through free() sits in the thread cache
    // and is aligned already: malloc finds it eight times faster.
    block = malloc(size);
    if (block != NULL && ((uintptr_t)block & (alignment - 1)) != 0) {
      free(block);
      block = NULL;
    }
  }
  if (block == NULL && posix_memalign(&block, alignment, size) != 0)
    return 0;
  prepare(block, size, zero);
  return (uintptr_t)block;
}

void hamr_heap_free(uintptr_t at) { free((void *)at); }

size_t hamr_heap_usable(uintptr_t at) { return malloc_usable_size((void *)at); }

uintptr_t hamr_heap_free_function(void) { return (uintptr_t)free; }

uintptr_t hamr_operator_allocate(uintptr_t operator_new, int aligned, size_t size, int zero) {
  static const char nothrow; // std::nothrow_t is empty: only an address is needed
  void *block = aligned ? ((void *(*)(size_t, size_t, const void *))operator_new)(size, alignment, &nothrow)
                        : ((void *(*)(size_t, const void *))operator_new)(size, &nothrow);
  if (block != NULL)
    prepare(block, size, zero);
  return (uintptr_t)block;
}

void hamr_operator_free(uintptr_t operator_delete, int aligned, uintptr_t at) {
  if (aligned)
    ((void (*)(void *, size_t))operator_delete)((void *)at, alignment);
  else
    ((void (*)(void *))operator_delete)((void *)at);
}

int hamr_find_operators(const char *library, uintptr_t found[4], char *message, size_t room) {
  void *handle = RTLD_DEFAULT;
  if (library != NULL)
    handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || handle != NULL) {
    found[0] = (uintptr_t)dlsym(handle, "_ZnamRKSt9nothrow_t");
    if (found[0] != 0)
      found[1] = (uintptr_t)dlsym(handle, "_ZdaPv");
    if (found[0] != 0 && found[1] != 0) {
      found[2] = (uintptr_t)dlsym(handle, "_ZnamSt11align_val_tRKSt9nothrow_t"); // of C++17
      found[3] = (uintptr_t)dlsym(handle, "_ZdaPvSt11align_val_t");
      return 1;
    }
  }
  const char *words = dlerror();
  snprintf(message, room, "%s", words != NULL ? words : "symbol not found");
  return 0;
}
