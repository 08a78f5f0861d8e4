// Checks of the memory that calls and late work touch.
#include "emulator.h"

static CUresult check_span(const struct block *b, CUdeviceptr address, size_t size) {
  if (b->freeing)
    return invalid(CUDA_ERROR_INVALID_VALUE, "use after free of %#llx", address);
  if (b->kind == VIRTUAL_MEMORY) {
    if (is_mapped(b, address, size, 0))
      return CUDA_SUCCESS;
    return invalid(CUDA_ERROR_INVALID_VALUE, "not mapped, or to no device: %zu bytes at %#llx", size, address);
  }
  if (address >= b->address && address - b->address <= b->size &&
      size <= b->size - (size_t)(address - b->address))
    return CUDA_SUCCESS;
  if (b->kind == REGISTERED_MEMORY) // a program may not know how far somebody has registered its memory
    return CUDA_ERROR_INVALID_VALUE;
  return invalid(CUDA_ERROR_INVALID_VALUE, "out of bounds: %zu bytes at %#llx of the %zu at %#llx",
                 size, address, b->size, b->address);
}

// Any address outside our blocks is taken for pageable memory.
CUresult make_span(struct span *span, CUdeviceptr address, size_t size) {
  struct block *b = find_block(address);
  *span = (struct span){address, size, b, b ? b->number : 0};
  if (!b && address == 0 && size > 0)
    return invalid(CUDA_ERROR_INVALID_VALUE, "null pointer");
  return b ? check_span(b, address, size) : CUDA_SUCCESS;
}

// Where the emulator reaches the bytes; null after a violation.
char *late_bytes(const struct span *span, const char *what) {
  if (span->number == 0)
    return (char *)(uintptr_t)span->address;
  struct block *b = find_numbered(span->address, span->number);
  if (!b || b->freed) {
    violate("use after free: a late %s touches %#llx", what, span->address);
    return NULL;
  }
  if (b->kind == VIRTUAL_MEMORY && !is_mapped(b, span->address, span->size, 0)) {
    violate("use after unmap: a late %s touches %#llx", what, span->address);
    return NULL;
  }
  return b->data + (span->address - b->address);
}

// Whether code that runs on context's device reaches some of the block.
int may_reach(struct context *context, const struct block *block, CUdeviceptr address, size_t size) {
  if (block->kind == REGISTERED_MEMORY)
    return block->portable || block->context == context;
  if (block->kind == VIRTUAL_MEMORY)
    return is_mapped(block, address, size, 1u << context->device);
  if (block->kind >= MANAGED_MEMORY || block->device == context->device)
    return 1;
  unsigned device = 1u << context->device;
  if (block->kind == POOL_MEMORY)
    return block->pool->access & device ? 1 : 0;
  return context->peers & 1u << block->device ? 1 : 0;
}

// The driver refuses to copy or fill where nobody may write.
CUresult check_writable(const struct span *span) {
  const struct block *b = span->block;
  if (b && b->kind == VIRTUAL_MEMORY && !is_writable(b, span->address, span->size, 0))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

// Whether code that runs on context's device may write where it reaches the block.
int may_write(struct context *context, const struct block *block, CUdeviceptr address, size_t size) {
  return block->kind != VIRTUAL_MEMORY || is_writable(block, address, size, 1u << context->device);
}
