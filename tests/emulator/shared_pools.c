// Pools whose memory other processes import, one allocation at a time: it is in a file, of which an
// allocation's place is sent.
#include "emulator.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BY_DESCRIPTOR = 1 };

// What the driver's CUmemPoolPtrExportData holds is its own business.
struct exported {
  uint64_t mark, inode, offset, size, unused[4];
};
_Static_assert(sizeof(struct exported) == 64, "as large as the driver's");

static const uint64_t mark = 0x68616d72506f6f6c;

EXPORT CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool handle, int type,
                                                 unsigned long long flags) {
  CALL;
  struct pool *p;
  RETURN_IF_FAILED(find_pool(handle, &p));
  if (type != BY_DESCRIPTOR || flags || p->file < 0 || p->imported)
    return invalid(CUDA_ERROR_INVALID_VALUE, "export as type %d of a pool that was not made for it", type);
  int descriptor = dup(p->file); // nobody promises that it is closed on exec
  if (descriptor < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  *(int *)shareable = descriptor;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *handle, void *shareable, int type,
                                                   unsigned long long flags) {
  CALL;
  if (type != BY_DESCRIPTOR || flags || !shares_by_descriptor())
    return CUDA_ERROR_NOT_SUPPORTED;
  int descriptor = (int)(intptr_t)shareable, device = device_of_file("pool", descriptor);
  if (device < 0 || check_device(device))
    return CUDA_ERROR_INVALID_VALUE;
  int file = reopened(getpid(), descriptor);
  if (file < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  struct pool *p = new_pool(device);
  p->file = file;
  p->imported = 1;
  *handle = p->handle;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolExportPointer(struct exported *data, CUdeviceptr address) {
  CALL;
  struct block *b = find_block(address);
  struct stat file;
  if (!b || b->freeing || b->address != address || b->kind != POOL_MEMORY || b->pool->file < 0 || b->pool->imported ||
      fstat(b->pool->file, &file) != 0)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is no allocation of a pool that is shared", address);
  *data = (struct exported){.mark = mark, .inode = file.st_ino, .offset = b->offset, .size = b->size};
  return CUDA_SUCCESS;
}

// Its maker frees it only when nobody has it any more.
EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool handle, struct exported *data) {
  CALL;
  struct pool *p;
  struct block *b;
  struct stat file;
  RETURN_IF_FAILED(find_pool(handle, &p));
  if (!p->imported)
    return invalid(CUDA_ERROR_INVALID_VALUE, "an import from a pool that was not imported");
  if (fstat(p->file, &file) != 0 || data->mark != mark || data->inode != file.st_ino || data->size == 0 ||
      data->offset > (uint64_t)file.st_size || data->size > (uint64_t)file.st_size - data->offset)
    return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_FAILED(import_block(p, data->offset, data->size, &b));
  *address = b->address;
  return CUDA_SUCCESS;
}
