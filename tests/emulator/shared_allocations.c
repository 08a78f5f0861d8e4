// What cuMemAlloc returned, opened by other processes while its maker lives: from then on it is in a
// file, which they open by the maker's number and the descriptor's.
#include "emulator.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LAZY_ENABLE_PEER_ACCESS = 1 };

// What the driver's CUipcMemHandle holds is its own business. By value, as the driver takes it.
struct handle {
  uint64_t mark, inode, size;
  int32_t process, descriptor, device, unused[7];
};
_Static_assert(sizeof(struct handle) == 64, "as large as the driver's");

static const uint64_t mark = 0x68616d72416c6c6f;

// The elements move to a file, where they are.
static CUresult put_in_file(struct block *b) {
  int file = new_file("allocation", b->device);
  if (file < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  if (ftruncate(file, (off_t)b->mapped) != 0 || pwrite(file, b->alias, b->mapped, 0) != (ssize_t)b->mapped ||
      mmap(b->alias, b->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    close(file);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  b->exported = file + 1;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcGetMemHandle(struct handle *handle, CUdeviceptr address) {
  CALL_IN_CONTEXT;
  struct block *b = find_block(address);
  struct stat file;
  if (!shares_by_descriptor())
    return CUDA_ERROR_NOT_SUPPORTED;
  if (!b || b->freeing)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is no allocation", address);
  if (b->kind != DEVICE_MEMORY || b->opened)
    return CUDA_ERROR_INVALID_VALUE;
  if (!b->exported)
    RETURN_IF_FAILED(put_in_file(b));
  if (fstat(b->exported - 1, &file) != 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  *handle = (struct handle){.mark = mark, .inode = file.st_ino, .size = b->size, .process = getpid(),
                            .descriptor = b->exported - 1, .device = b->device};
  return CUDA_SUCCESS;
}

static struct block *opened_already(const struct handle *handle) {
  struct stat file;
  struct block *b;
  for (int i = 0; (b = next_block(&i));)
    if (b->opened && !b->freed && fstat(b->opened - 1, &file) == 0 && file.st_ino == handle->inode)
      return b;
  return NULL;
}

static CUresult open_handle(const struct handle *handle, struct context *context, struct block **block) {
  struct stat file;
  int own = reopened(handle->process, handle->descriptor);
  if (own < 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (fstat(own, &file) != 0 || file.st_ino != handle->inode || device_of_file("allocation", own) != handle->device ||
      handle->size == 0 || handle->size > (uint64_t)file.st_size ||
      open_block(own, handle->size, handle->device, block) != CUDA_SUCCESS) {
    close(own);
    return CUDA_ERROR_INVALID_VALUE;
  }
  use_part(own, 0, handle->size, 1);
  (*block)->context = context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, struct handle handle, unsigned flags) {
  CALL_IN_CONTEXT;
  if (flags != LAZY_ENABLE_PEER_ACCESS || handle.mark != mark)
    return CUDA_ERROR_INVALID_VALUE;
  if (handle.process == getpid())
    return CUDA_ERROR_INVALID_CONTEXT; // as the driver says to its own
  if (handle.device != context->device)
    return CUDA_ERROR_INVALID_DEVICE;
  struct block *b = opened_already(&handle);
  if (!b)
    RETURN_IF_FAILED(open_handle(&handle, context, &b));
  b->opens++;
  *address = b->address;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  CALL_IN_CONTEXT;
  struct block *b = find_block(address);
  if (!b || !b->opened || b->freeing || b->address != address)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is not open", address);
  if (--b->opens > 0)
    return CUDA_SUCCESS;
  b->freeing = 1;
  finish_device(b->device);
  release_block(b);
  return CUDA_SUCCESS;
}
