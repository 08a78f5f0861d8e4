// Memory without addresses, by handles: files without a name, which other processes open by a
// descriptor. What it is of, and how large, the file tells: its name has the device's number.
#include "emulator.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { garbage = 0xDB };
enum { PINNED_ALLOCATION = 1, DEVICE_LOCATION = 1, NO_SHARING = 0, BY_DESCRIPTOR = 1 };

struct location {
  int type, id;
};

struct properties { // as callers lay it out; what follows is not used
  int allocation, handles;
  struct location location;
};

static struct physical *memories;

void count_physical(int *count, size_t *bytes) {
  *count = 0;
  *bytes = 0;
  for (struct physical *p = memories; p; p = p->next) {
    ++*count;
    *bytes += p->size;
  }
}

static CUresult check_properties(const struct properties *properties) {
  if (properties->allocation != PINNED_ALLOCATION || properties->location.type != DEVICE_LOCATION)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->handles != NO_SHARING && (properties->handles != BY_DESCRIPTOR || !shares_by_descriptor()))
    return CUDA_ERROR_NOT_SUPPORTED;
  return check_device(properties->location.id);
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *size, const struct properties *properties,
                                              int option) {
  CALL;
  RETURN_IF_FAILED(check_properties(properties));
  if (option != 0 && option != 1)
    return CUDA_ERROR_INVALID_VALUE;
  *size = granularity;
  return CUDA_SUCCESS;
}

static int spoiled_file(size_t size, int device) {
  int file = new_file("memory", device);
  if (file < 0)
    return -1;
  char *at = MAP_FAILED;
  if (ftruncate(file, (off_t)size) == 0)
    at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) {
    close(file);
    return -1;
  }
  memset(at, garbage, size);
  munmap(at, size);
  return file;
}

static struct physical *add_memory(int device, int file, size_t size, int handles) {
  struct physical *p = calloc(1, sizeof *p);
  *p = (struct physical){.next = memories, .handle = new_handle(), .device = device, .file = file,
                         .handles = 1, .shared = handles == BY_DESCRIPTOR, .size = size};
  memories = p;
  devices[device].used += size;
  return p;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                            const struct properties *properties, unsigned long long flags) {
  CALL;
  RETURN_IF_FAILED(check_properties(properties));
  if (size == 0 || size % granularity || flags)
    return invalid(CUDA_ERROR_INVALID_VALUE, "memory of %zu bytes", size);
  int device = properties->location.id;
  if (!make_room(DEVICE_MEMORY, size, device))
    return CUDA_ERROR_OUT_OF_MEMORY;
  int file = spoiled_file(size, device);
  if (file < 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = add_memory(device, file, size, properties->handles)->handle;
  return CUDA_SUCCESS;
}

CUresult find_memory(CUmemGenericAllocationHandle handle, struct physical **memory) {
  struct physical *p = memories;
  while (p && (p->handle != handle || p->handles == 0))
    p = p->next;
  *memory = p;
  return p ? CUDA_SUCCESS : invalid(CUDA_ERROR_INVALID_VALUE, "unknown memory handle %#llx", handle);
}

void end_unused(struct physical *memory) {
  if (memory->handles || memory->mappings)
    return;
  struct physical **at = &memories;
  while (*at != memory)
    at = &(*at)->next;
  *at = memory->next;
  devices[memory->device].used -= memory->size;
  close(memory->file);
  free(memory);
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  CALL;
  struct physical *p;
  RETURN_IF_FAILED(find_memory(handle, &p));
  p->handles--;
  end_unused(p);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(struct properties *properties,
                                                       CUmemGenericAllocationHandle handle) {
  CALL;
  struct physical *p;
  RETURN_IF_FAILED(find_memory(handle, &p));
  *properties = (struct properties){PINNED_ALLOCATION, p->shared ? BY_DESCRIPTOR : NO_SHARING,
                                    {DEVICE_LOCATION, p->device}};
  return CUDA_SUCCESS;
}

// The caller closes the descriptor; the memory lasts at least until then.
EXPORT CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                             int type, unsigned long long flags) {
  CALL;
  struct physical *p;
  RETURN_IF_FAILED(find_memory(handle, &p));
  if (type != BY_DESCRIPTOR || flags || !p->shared)
    return invalid(CUDA_ERROR_INVALID_VALUE, "export as type %d of memory that was made %s sharing", type,
                   p->shared ? "for" : "without");
  int descriptor = dup(p->file); // nobody promises that it is closed on exec
  if (descriptor < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  *(int *)shareable = descriptor;
  return CUDA_SUCCESS;
}

static struct physical *known_file(const struct stat *file) {
  for (struct physical *p = memories; p; p = p->next) {
    struct stat known;
    if (fstat(p->file, &known) == 0 && known.st_ino == file->st_ino && known.st_dev == file->st_dev)
      return p;
  }
  return NULL;
}

// Memory that this process has already is the same one, once more.
EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                               int type) {
  CALL;
  int descriptor = (int)(intptr_t)shareable;
  struct stat file;
  if (type != BY_DESCRIPTOR || !shares_by_descriptor())
    return CUDA_ERROR_NOT_SUPPORTED;
  int device = device_of_file("memory", descriptor);
  if (device < 0 || check_device(device) || fstat(descriptor, &file) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  struct physical *p = known_file(&file);
  if (p) {
    p->handles++;
  } else {
    int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
      return CUDA_ERROR_OPERATING_SYSTEM;
    p = add_memory(device, own, (size_t)file.st_size, BY_DESCRIPTOR);
  }
  *handle = p->handle;
  return CUDA_SUCCESS;
}
